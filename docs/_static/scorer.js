/* Sphinx's search with its own scores, and pages of tables after those that explain. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , , score]) =>
    score - (Scorer.tables.has(page) || page.startsWith("example/") ? 20 : 0),
  tables: new Set([
    "api", "bench", "conformance-kit", "conversions", "events", "hooks", "layouts", "options",
    "sync-options", "types-in-other-messages", "writing-options",
  ]),
};
