"""The page of the command line, from the commands themselves."""

import typer
from typer.main import get_command

from constrained_sim.cli.app import app
from constrained_sim.cli.texts import EXIT_CODES

HEAD = f"""# Command line

`constrained_sim`, or `python -m constrained_sim`. {EXIT_CODES}

"""


def commands() -> str:
    """Return the page of all commands."""
    group = get_command(app)
    context = typer.Context(group, info_name="constrained_sim")
    return HEAD + "".join(command(group.get_command(context, name), context) for name in group.list_commands(context))


def command(member: object, context: typer.Context) -> str:
    """Return the section of one command: what it does, what it takes, its examples."""
    about, _, examples = (member.help or "").partition("Examples:")
    shown = "\n".join(line.strip() for line in examples.splitlines() if line.strip())
    options = (option for option in member.params if option.name != "help")
    rows = "\n".join(f"| `{parameter(option)}` | {(option.help or '').replace('|', ' ')} |" for option in options)
    text = f"## {member.name}\n\n{' '.join(about.split())}\n\n| | |\n|---|---|\n{rows}\n\n"
    return text + (f"```text\n{shown}\n```\n\n" if shown else "")


def parameter(option: object) -> str:
    """Return how an argument or option is written."""
    return option.opts[0] if option.opts and option.opts[0].startswith("-") else (option.metavar or option.name).upper()
