"""Events as rows of both shapes, and rows as events again: types, values, variants, JSON."""
