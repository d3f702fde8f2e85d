"""What all kinds of step have in common: arguments that are checked, and nothing to ask."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from fleetctl.shell import Part


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def probe(self, name: str) -> list[Part]:
        return []
