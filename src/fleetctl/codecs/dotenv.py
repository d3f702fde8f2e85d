"""`NAME=value` for a `.env` file, read alike by python-dotenv, by a shell and by docker compose.

Single quotes are safe unless the value contains a quote, a backslash that python-dotenv would take
for an escape, or `${`, which it expands even there. Double quotes are safe for a value with single
quotes and nothing that a shell would expand. Any other value is refused.
"""

import re

from fleetctl.codecs import Unrepresentable, refuse_nul_and_surrogates

_FORM = "a .env file"
_ASSIGNMENT = re.compile(r"""^(\w+)=(?:'([^']*)'|"([^"]*)")$""", re.ASCII | re.MULTILINE)


def encode(value: str) -> str:
    refuse_nul_and_surrogates(value, _FORM)
    if "\r" in value:
        raise Unrepresentable(value, _FORM, "readers turn its carriage return into a line feed")
    if "${" in value:
        raise Unrepresentable(value, _FORM, "readers expand ${…}, even between quotes")
    if "'" not in value:
        if re.search(r"\\(\\|$)", value):
            raise Unrepresentable(value, _FORM, "readers disagree about its backslashes")
        return f"'{value}'"
    if re.search(r'["$`\\]', value):
        raise Unrepresentable(value, _FORM, "no quotes keep both a ' and one of \" $ ` \\")
    return f'"{value}"'


def decode(text: str) -> dict[str, str]:
    return {name: single or double for name, single, double in _ASSIGNMENT.findall(text)}
