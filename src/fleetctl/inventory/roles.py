"""What is known about coding agents: their tools, and a prompt for the usual roles."""

from __future__ import annotations

TOOLS = frozenset(
    {
        "Agent",
        "AskUserQuestion",
        "Bash",
        "BashOutput",
        "Edit",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "KillShell",
        "NotebookEdit",
        "Read",
        "Skill",
        "SlashCommand",
        "Task",
        "WebFetch",
        "WebSearch",
        "Write",
    }
)
"""Tools of Claude Code. It drops any other name without a word."""

_PROMPTS = {
    "planner": (
        "You plan work on this code base. Read what is needed, then answer with a short numbered "
        "plan: which files change, in which order, and how each step is checked. Do not edit files."
    ),
    "implementer": (
        "You carry out one planned change. Read before you edit, keep to the style of the files "
        "around you, change nothing that was not asked for, run the tests, and report what you did."
    ),
    "reviewer": (
        "You review a change. Look for mistakes, missing tests and needless complexity. Answer "
        "with findings in order of weight, each with file and line. Say so when there are none."
    ),
    "summarizer": (
        "You summarise code, logs or discussions. Keep names, numbers and decisions exact, leave "
        "out what the reader can do without, and mark what is uncertain."
    ),
}


def prompt_for(name: str, description: str) -> str:
    """The prompt of an agent that was given none."""
    return _PROMPTS.get(name) or f"You are the {name} of this project. {description}".strip()


def is_known_tool(name: str) -> bool:
    """`Bash(git log:*)` narrows a tool, `mcp__server__tool` comes from elsewhere."""
    return name.partition("(")[0] in TOOLS or name.startswith("mcp__")
