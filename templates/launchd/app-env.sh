# Written by fleetctl from its inventory; edits here are lost.
# launchd runs it at the screen, since what SSH sets does not reach the app.
{% for variable in environment %}
export {{ variable.name }}={{ variable.value }}
{% endfor %}

set_by_us=$HOME/.config/fleetctl/ollama-app.names
for name in $(cat "$set_by_us" 2>/dev/null); do launchctl unsetenv "$name"; done
names="{% for variable in environment %} {{ variable.name }}{% endfor %}"
printf '%s\n' "$names" >"$set_by_us"
for name in $names; do
  eval "value=\$$name"
  launchctl setenv "$name" "$value"
done

# At login the app may have been quicker, and then runs without them.
if pgrep -x Ollama >/dev/null; then
  pkill -TERM -x Ollama
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    pgrep -x Ollama >/dev/null || break
    sleep 2
  done
  open -j -a Ollama --args hidden --fast-startup
fi
