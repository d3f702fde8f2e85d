"""Apple property lists in XML: the text between `<string>` and `</string>`."""

import plistlib
import re
from xml.sax.saxutils import escape

from fleetctl.codecs import Unrepresentable, refuse_nul_and_surrogates

_FORM = "a property list"
_NOT_XML = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def encode(value: str) -> str:
    refuse_nul_and_surrogates(value, _FORM)
    if "\r" in value:
        raise Unrepresentable(value, _FORM, "XML turns its carriage return into a line feed")
    if found := _NOT_XML.search(value):
        raise Unrepresentable(value, _FORM, f"XML has no character U+{ord(found[0]):04X}")
    return escape(value)


def decode(text: str) -> object:
    """The whole property list; macOS refuses what plistlib refuses."""
    return plistlib.loads(text.encode(), fmt=plistlib.FMT_XML)
