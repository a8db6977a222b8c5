"""The part of latex2sympy2_extended that calls of math-verify use."""
NormalizationConfig = dict
