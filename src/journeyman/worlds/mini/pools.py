"""The words worlds are made of: one-word names, so that a small vocabulary covers every world and split."""

from __future__ import annotations

ENTITIES: tuple[str, ...] = tuple(
    """Acme Apex Argo Atlas Aurora Avalon Basalt Beacon Birch Borealis Boulder Canyon Cascade Cedar Cobalt Comet
    Coral Crest Cygnus Delta Dune Echo Ember Everest Falcon Fjord Garnet Glacier Granite Harbor Helix Horizon
    Indigo Iris Jasper Juniper Keystone Lagoon Lotus Lumen Magnet Maple Meridian Mosaic Nebula Nimbus Onyx Orchid
    Osprey Pinnacle Polaris Prairie Quartz Raven Ridge Saffron Sequoia Solstice Summit Tundra Umbra Vertex Willow
    Zephyr""".split()  # noqa: SIM905  # 64 quoted words would be harder to read
)
"""64 names of client companies."""

PEOPLE: tuple[str, ...] = tuple(
    """Adams Baker Becker Costa Diaz Evans Fischer Garcia Haas Ito Jensen Kim Larsen Meyer Nagy Novak Okafor Patel
    Quinn Rossi Sato Schmidt Silva Suzuki Tanaka Varga Weber Wong Xu Young Zhang""".split()  # noqa: SIM905
)
"""31 surnames of account owners."""

TABLES: tuple[str, ...] = ("sales", "costs", "budget", "stock")
FORMATS: tuple[str, ...] = ("xlsx", "csv", "pdf", "docx")
QUARTERS: tuple[str, ...] = ("Q1", "Q2", "Q3", "Q4")
OWNERS_FILE = "owners.eml"

ROWS_PER_TABLE = 5
COLUMNS_PER_TABLE = 3
LOWEST, HIGHEST = 100, 999
"""Range of a cell, both ends included: always three digits."""
