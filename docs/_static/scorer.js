/* Sphinx's search with its own scores; but pages of tables come after those that explain, and
   where several pages name a word, the one on what is supported comes first. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , , score]) => score + Scorer.more(page),
  more: (page) =>
    page === "supported" ? 1 : Scorer.tables.has(page) || page.startsWith("example/") ? -20 : 0,
  tables: new Set([
    "api", "bench", "conformance-kit", "conversions", "events", "hooks", "layouts", "options",
    "sync-options", "types-in-other-messages", "writing-options",
  ]),
};
