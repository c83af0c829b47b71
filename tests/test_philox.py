"""Random numbers by address: the published vectors, ranges, independence of the order of calls."""

from __future__ import annotations

import numpy as np
import pytest

from rlx_swift.philox import philox, signs, uniform

# Random123's known answers for philox4x32 with 10 rounds: counter, key, result.
KNOWN = [
    ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], (0xA4093822, 0x299F31D0),
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter, key, expected):
    assert philox(np.array([counter], np.uint64), key)[0].tolist() == expected


def test_an_address_has_its_numbers():
    draw = uniform(3, 5, "a", (7, 11))
    assert draw.dtype == np.float32 and draw.shape == (7, 11)
    np.testing.assert_array_equal(draw, uniform(3, 5, "a", (7, 11)))
    np.testing.assert_array_equal(draw.reshape(-1)[:20], uniform(3, 5, "a", (20,)))
    for other in (uniform(4, 5, "a", (7, 11)), uniform(3, 6, "a", (7, 11)), uniform(3, 5, "b", (7, 11)),
                  uniform(3, 5 + 2**32, "a", (7, 11)), uniform(3 + 2**32, 5, "a", (7, 11))):
        assert not np.any(draw == other)
    assert uniform(0, 0, "a", ()).shape == () and uniform(0, 0, "a", (0, 3)).shape == (0, 3)


def test_ranges_and_moments():
    draw = uniform(0, 1, "x", (1_000_000,)).astype(float)
    assert 0 < draw.min() < 1e-5 and 1 - 1e-5 < draw.max() < 1
    assert draw.mean() == pytest.approx(0.5, abs=2e-3) and draw.var() == pytest.approx(1 / 12, abs=1e-3)
    flips = signs(0, 1, "x", (1_000_000,))
    assert set(np.unique(flips)) == {-1.0, 1.0} and abs(flips.mean()) < 4e-3
