"""The scanner of LETOR files: two passes over the bytes, without an object for each number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

Bytes = NDArray[np.uint8]

# What can be wrong with a line; a kernel returns the position in this list, 0 is no fault.
FAULTS = (
    "",
    "binary data: this is not a text file",
    "expected a label: a non-negative integer",
    "the label is negative",
    "expected qid:ID after the label",
    "expected index:value",
    "a feature number is below 1",
    "a feature is given twice",
    "a feature's value is not a number",
    "a feature's value is not finite",
    "a number has too many digits",
    "qid:ID after the label, which the first line does not have",
    "a feature number is beyond the width of the table",
)
(
    BINARY,
    LABEL,
    NEGATIVE,
    QID,
    PAIR,
    INDEX,
    TWICE,
    VALUE,
    INFINITE,
    DIGITS,
    MIXED,
    WIDE,
) = range(1, len(FAULTS))

NEWLINE, RETURN, SPACE, TAB, HASH, COLON = 10, 13, 32, 9, 35, 58
PLUS, MINUS, POINT, ZERO, NINE = 43, 45, 46, 48, 57
POWERS = 10.0 ** np.arange(23)  # exact in double precision


@kernel
def count_lines(text: Bytes) -> tuple[int, int, int, int, int]:
    """Count documents, the highest feature number and the values that need slow reading.

    Returns (documents, highest, slow, line, fault); the highest is -1 where there are no features.
    """
    documents, highest, slow = 0, -1, 0
    line, i, n = 0, 0, len(text)
    while i < n:
        line += 1
        has_token = False
        while i < n and text[i] != NEWLINE:
            c = text[i]
            if c == HASH:
                while i < n and text[i] != NEWLINE:
                    i += 1
                break
            if c == 0 or (c < 32 and c != TAB and c != RETURN):
                return documents, highest, slow, line, BINARY
            if c in (SPACE, TAB, RETURN):
                i += 1
                continue
            # A token: its number before a colon, and how long what follows is.
            has_token = True
            number, colon = 0, -1
            while i < n and text[i] > SPACE and text[i] != HASH:
                if text[i] == COLON and colon < 0:
                    colon = i
                elif colon < 0:
                    if ZERO <= text[i] <= NINE and 0 <= number < 10**9:
                        number = number * 10 + (text[i] - ZERO)
                    else:
                        number = -1
                i += 1
            if colon >= 0 and number >= 0:
                highest = max(highest, number)
                # Shorter values can have too few digits to be difficult.
                slow += (i - colon - 1) > 14
                for j in range(colon + 1, min(i, colon + 16)):
                    if text[j] == 69 or text[j] == 101:
                        slow += 1
        documents += has_token
        i += 1
    return documents, highest, slow, 0, 0


@kernel
def scan_lines(
    text: Bytes,
    table: FloatArray,
    labels: IntArray,
    numbers: IntArray,
    line_of: IntArray,
    places: IntArray,
    late: IntArray,
    with_ids: bool,
    base: int,
    nan: bool,
) -> tuple[int, int, int, int, bool, int]:
    """Fill the arrays with what the lines say.

    table (documents, features); labels, numbers (query ids as numbers) and line_of (documents,);
    places (documents, 4): start and end of the query id, start of the comment or -1, number of
    features given; late (values, 4): row, column, start and end of values left to Python.
    Whether lines have query ids, which number the first feature has, and whether values may be
    written nan, is known before.

    There must be as many rows as lines that are not blank; more do no harm.

    Returns (documents, line, fault, number of late values, whether all query ids are numbers,
    number of columns up to the last one that any line has).
    """
    n, row, line, i = len(text), 0, 0, 0
    n_late = 0
    numeric = True
    given_in = np.full(table.shape[1], -1, np.int64)
    while i < n:
        line += 1
        while i < n and (text[i] == SPACE or text[i] == TAB or text[i] == RETURN):
            i += 1
        if i >= n or text[i] == NEWLINE or text[i] == HASH:
            while i < n and text[i] != NEWLINE:
                i += 1
            i += 1
            continue
        # The label: digits, perhaps with a point and zeros.
        end = _token_end(text, i)
        value, kind = _number(text, i, end)
        if kind != 0 or value != np.floor(value) or value > 2.0**53:
            return row, line, LABEL, n_late, numeric, 0
        if value < 0:
            return row, line, NEGATIVE, n_late, numeric, 0
        labels[row] = int(value)
        line_of[row] = line
        i = _skip_blanks(text, end)
        # The query id.
        end = _token_end(text, i)
        is_qid = end - i > 4 and text[i] == 113 and text[i + 1] == 105
        is_qid = is_qid and text[i + 2] == 100 and text[i + 3] == COLON
        if is_qid != with_ids:
            return row, line, QID if with_ids else MIXED, n_late, numeric, 0
        places[row, 0], places[row, 1] = i, i
        if with_ids:
            places[row, 0], places[row, 1] = i + 4, end
            number = 0
            minus = text[i + 4] == MINUS
            begin = i + 4 + minus
            for j in range(begin, end):
                if not ZERO <= text[j] <= NINE:
                    numeric = False
                    break
                if j - begin < 18:
                    number = number * 10 + (text[j] - ZERO)
            digits = end - begin
            # More digits do not fit, and a leading zero or the sign of -0 would be lost.
            numeric = numeric and 1 <= digits <= 18
            numeric = numeric and not (text[begin] == ZERO and (digits > 1 or minus))
            numbers[row] = -number if minus else number
            i = _skip_blanks(text, end)
        places[row, 2], places[row, 3] = -1, 0
        while i < n and text[i] != NEWLINE:
            if text[i] == HASH:
                places[row, 2] = i
                while i < n and text[i] != NEWLINE:
                    i += 1
                break
            end = _token_end(text, i)
            colon = i
            index = 0
            while colon < end and ZERO <= text[colon] <= NINE and index < 10**9:
                index = index * 10 + (text[colon] - ZERO)
                colon += 1
            if colon == i or colon >= end or text[colon] != COLON:
                negative = text[i] == MINUS and end - i > 2
                return row, line, INDEX if negative else PAIR, n_late, numeric, 0
            if index < base:
                return row, line, INDEX, n_late, numeric, 0
            column = index - base
            if column >= table.shape[1]:
                return row, line, WIDE, n_late, numeric, 0
            if given_in[column] == row:
                return row, line, TWICE, n_late, numeric, 0
            given_in[column] = row
            value, kind = _number(text, colon + 1, end)
            null = kind == VALUE and _is_null(text, colon + 1, end)
            if null or (nan and kind == INFINITE and _is_nan(text, colon + 1, end)):
                value = np.nan
            elif kind == DIGITS and n_late < len(late):
                late[n_late, 0], late[n_late, 1] = row, column
                late[n_late, 2], late[n_late, 3] = colon + 1, end
                n_late += 1
            elif kind != 0:
                return row, line, kind, n_late, numeric, 0
            table[row, column] = value
            places[row, 3] += 1
            i = _skip_blanks(text, end)
        row += 1
        i += 1
    used = table.shape[1]
    while used and given_in[used - 1] < 0:
        used -= 1
    return row, 0, 0, n_late, numeric, used


@kernel
def _token_end(text: Bytes, start: int) -> int:
    """Find where the token that starts here ends."""
    i = start
    while i < len(text) and text[i] > SPACE and text[i] != HASH:
        i += 1
    return i


@kernel
def _skip_blanks(text: Bytes, start: int) -> int:
    """Find the next token or the end of the line."""
    i = start
    while i < len(text) and (text[i] == SPACE or text[i] == TAB or text[i] == RETURN):
        i += 1
    return i


@kernel
def _is_null(text: Bytes, start: int, end: int) -> bool:
    """Return whether the token is NULL, in any case."""
    if end - start != 4:
        return False
    n, u = text[start] & 223, text[start + 1] & 223
    return n == 78 and u == 85 and text[start + 2] & 223 == 76 and text[start + 3] & 223 == 76


@kernel
def _is_nan(text: Bytes, start: int, end: int) -> bool:
    """Return whether the token is nan, in any case."""
    if end - start != 3:
        return False
    return text[start] & 223 == 78 and text[start + 1] & 223 == 65 and text[start + 2] & 223 == 78


@kernel
def _number(text: Bytes, start: int, end: int) -> tuple[float, int]:
    """Read a decimal number, correctly rounded, or return which fault it has.

    Up to 15 digits the mantissa and the power of ten are exact, so that one division or
    multiplication rounds correctly; up to 18 digits `_divide` takes over. The fault DIGITS means
    that more care is needed.
    """
    i = start
    negative = False
    if i < end and (text[i] == MINUS or text[i] == PLUS):
        negative = text[i] == MINUS
        i += 1
    mantissa, digits, seen, exponent = 0, 0, 0, 0
    point = False
    while i < end:
        c = text[i]
        if ZERO <= c <= NINE:
            seen += 1
            if mantissa or c != ZERO:
                digits += 1
            if digits <= 18:
                mantissa = mantissa * 10 + (c - ZERO)
                exponent -= point
            else:
                exponent += not point
        elif c == POINT and not point:
            point = True
        else:
            break
        i += 1
    if seen == 0:
        word = text[i] & 223 if i < end else 0
        second = text[i + 1] & 223 if i + 1 < end else 0
        if (word == 73 and second == 78) or (word == 78 and second == 65):
            return 0.0, INFINITE  # inf or nan
        return 0.0, VALUE
    if i < end:
        if text[i] != 69 and text[i] != 101:
            return 0.0, VALUE
        i += 1
        if i < end and (text[i] == MINUS or text[i] == PLUS):
            i += 1
        if i >= end:
            return 0.0, VALUE
        while i < end:
            if not ZERO <= text[i] <= NINE:
                return 0.0, VALUE
            i += 1
        return 0.0, DIGITS
    if digits > 18 or exponent < -22 or exponent > 22 or (digits > 15 and exponent > 0):
        return 0.0, DIGITS
    if digits > 15:
        value = _divide(mantissa, POWERS[-exponent])
        if np.isnan(value):
            return 0.0, DIGITS
    else:
        value = mantissa * POWERS[exponent] if exponent >= 0 else mantissa / POWERS[-exponent]
    return -value if negative else value, 0


@kernel
def _divide(mantissa: int, power: float) -> float:
    """Divide a whole number below 10^18 by a power of ten, correctly rounded, or return NaN.

    The quotient is found as a sum of two doubles, good to about 100 bits. Its larger part is the
    correctly rounded quotient unless the smaller one is too near to half a unit of its last
    place to tell.
    """
    high = float(mantissa)
    low = float(mantissa - int(high))
    first = high / power
    # Dekker's product: first * power as the exact sum of two doubles.
    product = first * power
    split = 134217729.0 * first
    a = split - (split - first)
    b = first - a
    split = 134217729.0 * power
    c = split - (split - power)
    d = power - c
    error = ((a * c - product) + a * d + b * c) + b * d
    second = (((high - product) - error) + low) / power
    total = first + second
    rest = second - (total - first)
    doubt = abs(total) * 2.0**-98
    return total if total + (rest + doubt) == total + (rest - doubt) == total else np.nan
