"""Task templates of offices: one file per template, grouped by domain, each a frozen value in ``TEMPLATES``.

``journeyman worlds new-template`` writes a new one; ``docs/worlds.md`` says what it must provide.
"""

from __future__ import annotations

from journeyman.worlds.template import Template
from journeyman.worlds.templates.banking.ib1_ltm import IB1
from journeyman.worlds.templates.banking.ib2_peers import IB2
from journeyman.worlds.templates.banking.ib3_sensitivity import IB3
from journeyman.worlds.templates.banking.ib4_equity import IB4
from journeyman.worlds.templates.banking.ib5_bids import IB5
from journeyman.worlds.templates.banking.ib6_peg import IB6
from journeyman.worlds.templates.banking.ib7_certificate import IB7
from journeyman.worlds.templates.banking.ib8_factbook import IB8
from journeyman.worlds.templates.banking.ib9_addbacks import IB9
from journeyman.worlds.templates.banking.ib10_waterfall import IB10
from journeyman.worlds.templates.banking.ib11_repair import IB11
from journeyman.worlds.templates.code.c1_report import C1
from journeyman.worlds.templates.code.c2_reconcile import C2
from journeyman.worlds.templates.code.c3_orders import C3
from journeyman.worlds.templates.consulting.mc1_retention import MC1
from journeyman.worlds.templates.consulting.mc2_market import MC2
from journeyman.worlds.templates.consulting.mc3_spend import MC3
from journeyman.worlds.templates.consulting.mc4_spans import MC4
from journeyman.worlds.templates.consulting.mc5_waterfall import MC5
from journeyman.worlds.templates.consulting.mc6_interviews import MC6
from journeyman.worlds.templates.consulting.mc7_refresh import MC7
from journeyman.worlds.templates.consulting.mc8_survey import MC8
from journeyman.worlds.templates.coordination.ib12_questions import IB12
from journeyman.worlds.templates.coordination.x1_memo import X1
from journeyman.worlds.templates.dialogue.td1_meeting import TD1
from journeyman.worlds.templates.dialogue.td2_release import TD2
from journeyman.worlds.templates.engineering.ml1_payments import ML1
from journeyman.worlds.templates.engineering.ml2_load import ML2
from journeyman.worlds.templates.instructions.if1_briefing import IF1
from journeyman.worlds.templates.instructions.if2_spans import IF2
from journeyman.worlds.templates.law.cl1_clauses import CL1
from journeyman.worlds.templates.law.cl2_consents import CL2
from journeyman.worlds.templates.law.cl3_redline import CL3
from journeyman.worlds.templates.law.cl4_terms import CL4
from journeyman.worlds.templates.law.cl5_deadline import CL5
from journeyman.worlds.templates.law.cl6_exposure import CL6
from journeyman.worlds.templates.law.cl7_closing import CL7
from journeyman.worlds.templates.law.cl8_disclosure import CL8
from journeyman.worlds.templates.law.cl9_register import CL9
from journeyman.worlds.templates.law.cl10_privilege import CL10
from journeyman.worlds.templates.mathematics.ma1_award import MA1
from journeyman.worlds.templates.mathematics.ma2_panels import MA2
from journeyman.worlds.templates.science.sc1_calibration import SC1
from journeyman.worlds.templates.science.sc2_ageing import SC2
from journeyman.worlds.templates.search.s1_amendment import S1
from journeyman.worlds.templates.search.s2_timeline import S2
from journeyman.worlds.templates.search.s3_absent import S3
from journeyman.worlds.templates.search.s4_receivables import S4

TEMPLATES: dict[str, Template] = {
    "IB1": IB1(),
    "CL1": CL1(),
    "MC1": MC1(),
    "S1": S1(),
    "C3": C3(),
    "IB12": IB12(),
    "MC3": MC3(),
    "IB2": IB2(),
    "MC4": MC4(),
    "S3": S3(),
    "CL2": CL2(),
    "CL9": CL9(),
    "CL4": CL4(),
    "CL5": CL5(),
    "IB4": IB4(),
    "C2": C2(),
    "IB3": IB3(),
    "IB11": IB11(),
    "CL7": CL7(),
    "CL10": CL10(),
    "C1": C1(),
    "IB10": IB10(),
    "MC5": MC5(),
    "S2": S2(),
    "CL3": CL3(),
    "CL6": CL6(),
    "CL8": CL8(),
    "IB6": IB6(),
    "MC8": MC8(),
    "MC2": MC2(),
    "IB9": IB9(),
    "MC6": MC6(),
    "IB5": IB5(),
    "MC7": MC7(),
    "IB7": IB7(),
    "IB8": IB8(),
    "S4": S4(),
    "MA1": MA1(),
    "MA2": MA2(),
    "SC1": SC1(),
    "SC2": SC2(),
    "ML1": ML1(),
    "ML2": ML2(),
    "IF2": IF2(),
    "IF1": IF1(),
    "TD1": TD1(),
    "TD2": TD2(),
    "X1": X1(),
}
"""Id -> template, in the order in which a build takes them in turn."""
