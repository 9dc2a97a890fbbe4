"""What a rating says in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permdist._text import plural, text_table

if TYPE_CHECKING:
    import pandas as pd

    from permdist.rating.checks import Goodness

MOST_WORST = 5


def coefficients_text(table: pd.DataFrame) -> str:
    """Return the coefficients of covariates as a table."""
    forms = {"z": ".2f", "p_value": ".3g"}
    rows = [
        [
            str(name),
            *(
                format(value, forms.get(column, ".4f"))
                for column, value in zip(table, row, strict=True)
            ),
        ]
        for name, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return text_table(["covariate", *coefficient_heads(table)], rows)


def coefficient_heads(table: pd.DataFrame) -> list[str]:
    """Return how the columns of a table of coefficients are headed where a person reads."""
    heads = {"standard_error": "s.e.", "p_value": "p", "sd": "s.d."}
    return [heads.get(str(column), str(column)) for column in table]


def chances_text(table: pd.DataFrame) -> str:
    """Return the chances to win a battle as a table."""
    rows = [
        [str(name), *("" if value != value else f"{value:.2f}" for value in row)]
        for name, row in zip(table.index, table.to_numpy().tolist(), strict=True)
    ]
    return text_table(["chance of a win against", *map(str, table.columns)], rows)


def worst_text(residuals: pd.DataFrame) -> str:
    """Return the pairs that fit worst as a table."""
    rows = [
        [
            f"{row['first']} - {row['second']}",
            f"{row['battles']:,g}",
            f"{row['wins'] + row['ties'] / 2:,g}",
            f"{row['expected_wins'] + row['expected_ties'] / 2:,.1f}",
            f"{row['z']:+.2f}",
            f"{row['adjusted']:.3g}",
        ]
        for row in residuals.head(MOST_WORST).to_dict(orient="records")
    ]
    head = ["worst fitting pairs", "battles", "points", "expected", "z", "adjusted p"]
    return text_table(head, rows)


def goodness_rows(found: Goodness) -> dict[str, str]:
    """Return how well a model fits, in a few lines."""
    rows = {}
    if found.deviance is not None:
        value = found.deviance
        text = f"{value.value:.1f} on {value.degrees:,} degrees of freedom"
        if value.degrees > 0:
            text += f", p = {value.p_value:.3g}"
        if value.sparse > 0.2:
            text += f" (rough: {value.sparse:.0%} of the expected counts are below 5)"
        rows["deviance"] = text
    unusual = int((found.residuals["adjusted"] < 0.05).sum())
    rows["pairs that do not fit"] = (
        f"{unusual:,} at 5%, adjusted for {len(found.residuals):,} pairs"
    )
    circles = found.circles
    if circles.triads:
        rows["circles"] = (
            f"{circles.share:.1%} of {plural(circles.triads, 'triple')}, "
            f"{found.expected_circles[0]:.1%} expected; {circles.significant:,} significant"
        )
    if found.calibration is not None:
        rows["log loss, held out"] = (
            f"{found.log_loss:.4f}; {found.constant_loss:.4f} with equal chances for all pairs"
        )
    return rows
