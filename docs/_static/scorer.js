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

/* Sphinx finds a main entry only by exactly its words, and a page only if it has all words of the
   query. Here an entry is found if the query has its words, among others, in any order and number
   ("a queue for dead letters"); and if no page has all words, those with most of them are found. */
if (typeof Search !== "undefined") {
  const byText = Search.performTermsSearch;

  const entries = (words) => {
    const { docnames, filenames, titles, indexentries } = Search._index;
    const stemmer = new Stemmer();
    const found = [];
    for (const [entry, places] of Object.entries(indexentries)) {
      const own = splitQuery(entry).filter((word) => !stopwords.has(word));
      if (!own.length || !own.every((word) => words.has(stemmer.stemWord(word)))) continue;
      const score = (100 * own.length) / Math.max(own.length, words.size);
      for (const [file, id, isMain] of places) {
        const place = [docnames[file], titles[file], `#${id}`, null, score, filenames[file], "index"];
        if (isMain) found.push(place);
      }
    }
    return found;
  };

  const byMostWords = (words, excluded) => {
    const pages = new Map();
    for (const word of words) {
      for (const [page, title, anchor, text, score, ...more] of byText(new Set([word]), excluded)) {
        const sum = score / words.size + (pages.get(page)?.[4] ?? 0);
        pages.set(page, [page, title, anchor, text, sum, ...more]);
      }
    }
    return [...pages.values()];
  };

  Search.performTermsSearch = (words, excluded) => {
    const found = byText(words, excluded);
    return [...entries(words), ...(found.length ? found : byMostWords(words, excluded))];
  };
}
