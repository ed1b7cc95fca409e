"""`constrained_sim why`: the explanation of an error or a warning."""

import re
from difflib import get_close_matches
from typing import Annotated

import typer


def why_command(
    name: Annotated[str, typer.Argument(help="What stands at the end of a message; empty: list all.")] = "",
) -> None:
    """Explain an error or a warning, and say what to do.

    Examples:
        $ constrained_sim why

        $ constrained_sim why ContactNotSolved
    """
    from constrained_sim.exceptions import UnknownName

    texts = explanations()
    if not name:
        print("\n".join(texts))
        return
    by_lower = {known.lower(): known for known in texts}
    found = by_lower.get(name.lower())
    if found is None:
        close = get_close_matches(name.lower(), by_lower)
        raise UnknownName("error or warning", name, [by_lower[text] for text in close] or texts)
    print(f"{found}\n\n{texts[found]}")


def explanations() -> dict[str, str]:
    """Return the paragraphs about errors and warnings, by name."""
    from constrained_sim.shipped import share_folder

    page = (share_folder() / "docs" / "why" / "index.md").read_text(encoding="utf-8")
    plain = re.sub(r"\[([^]]+)\]\([^)]*\)|^## .*$", r"\1", page.partition("\n## Errors\n")[2], flags=re.MULTILINE)
    found = re.split(r"^### (\w+)\n", plain, flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(found[::2], found[1::2], strict=True)}
