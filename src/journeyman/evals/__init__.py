"""Scores and behaviour: what may be said about a policy from graded Trials.

Promises: a number never leaves without its kind, n, interval and system boundary; estimators are pure functions on
arrays, without files, clocks or torch; what broke outside the policy stays out of every denominator and is counted
beside it.

Modules: ``score`` (kinds, Score, Difference, Ratio), ``tally`` (graded Trials -> Scores and Differences),
``clustered`` (mean, t interval, variance split), ``paired`` (difference, sign-flip test, verdict word),
``proportion`` (Wilson, Fisher), ``passk`` (pass@k, pass^k, retry@k), ``multiple`` (Holm, equivalence), ``power``
(detectable effect), ``behaviour`` (ratios of recorded Trials), ``table`` (one column, one kind); of sets of tasks:
``rungs`` (the order of scripted baselines), ``verifiers`` (how good the verifiers are).
"""
