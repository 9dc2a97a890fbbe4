"""``permdist identities``: the catalogue, tried out."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def identities(
    name: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which ones; all by default.")
    ] = None,
    examples: Annotated[int, typer.Option(help="Instances to try of each.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="The seed of the instances.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check what the library claims on generated instances; exit code 1 if a claim fails."""
    from permdist.identities import check_all

    results = check_all(name or None, max_examples=examples, seed=seed)
    if as_json:
        facts = [
            {
                "name": result.identity.name,
                "statement": result.identity.statement,
                "source": result.identity.source,
                "tried": result.tried,
                "worst": None if result.worst != result.worst else result.worst,
                "passed": result.passed,
            }
            for result in results
        ]
        typer.echo(json.dumps(facts, indent=2))
    else:
        typer.echo(str(results))
    if not results.passed:
        raise typer.Exit(1)
