"""``permdist identities``: the catalogue of identities, checked."""

from typing import Annotated

import typer

from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, Seed, no_litter, print_json, terminal_width


def identities(
    name: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Identities to check; by default all."),
    ] = None,
    examples: Annotated[
        int, typer.Option(help="Number of random instances of each.", min=1, max=10**6)
    ] = 50,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check the identities behind the library on random instances; exit code 1 if one fails."""
    from permdist.identities import check_all

    with no_litter():
        results = check_all(name or None, max_examples=examples, rng=seed)
    if as_json:
        facts = [
            {
                "name": result.identity.name,
                "statement": result.identity.statement,
                "source": result.identity.source,
                "tried": result.tried,
                "worst": result.worst,
                "passed": result.passed,
            }
            for result in results
        ]
        print_json(facts)
    else:
        echo(results.to_text(terminal_width() or 130))
    if not results.passed:
        raise typer.Exit(1)
