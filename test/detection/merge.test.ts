/** The merge rule: the result does not depend on the order in which scorings arrive. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EMPTY_ROW, type ExportRow } from '../../src/detection/fields.ts';
import type { Match } from '../../src/detection/match.ts';
import { type Known, merge, type Scoring, shownUrl } from '../../src/detection/merge.ts';
import { forAll } from '../support/for-all.ts';
import { contentType, exportRow, scoringOf } from '../support/matches.ts';

/** Scorings of one detection. */
const scorings = contentType.chain((type) => {
  const one = { subscription_id: 7001, source_internal_id: 1, article_id: 1 };
  const scored = exportRow(type).map((row) => scoringOf(type, { ...row, ...one }));
  return fc.array(scored, { minLength: 1, maxLength: 6 });
});

/** Scorings, and the same ones in another order and with repetitions. */
const twoOrders = scorings.chain((list) => {
  const order = fc.shuffledSubarray(list, { minLength: list.length });
  const repeated = fc.array(fc.tuple(fc.constantFrom(...list), fc.nat()));
  const other = fc
    .tuple(order, repeated)
    .map(([all, more]) =>
      more.reduce((so, [again, at]) => so.toSpliced(at % (so.length + 1), 0, again), all),
    );
  return fc.tuple(fc.constant(list), other);
});

function mergeAll(list: readonly Scoring[], licensed: boolean): Known {
  let known: Known | null = null;
  for (const scoring of list) {
    const outcome = merge(known, scoring, licensed);
    if (outcome.kind !== 'unchanged') known = outcome.known;
  }
  assert.ok(known !== null);
  return known;
}

/** The members that do not depend on the order: all except version, and exported_at if no row has it. */
function orderIndependent(known: Known): object {
  const { exported_at, ...match } = known.match;
  return { match, exported_at: known.exported_at_given && exported_at, url_shown: known.url_shown };
}

/** The members whose change creates a version. */
function visible({ match, url_shown }: Known): object {
  const { last_scored_at: _, exported_at: __, ...rest } = match;
  return { ...rest, article: { ...rest.article, url: url_shown } };
}

test('any order and repetition of scorings gives the same detection', () => {
  forAll(2000, twoOrders, fc.boolean(), ([one, other], licensed) => {
    assert.deepEqual(orderIndependent(mergeAll(one, licensed)), orderIndependent(mergeAll(other, licensed)));
  });
});

test('a repeated scoring changes nothing, whatever came in between', () => {
  forAll(100, scorings, fc.boolean(), (list, licensed) => {
    const known = mergeAll(list, licensed);
    for (const scoring of list) assert.deepEqual(merge(known, scoring, licensed), { kind: 'unchanged' });
  });
});

test('the version counts the visible changes, and nothing else', () => {
  forAll(1000, scorings, fc.boolean(), (list, licensed) => {
    let known: Known | null = null;
    for (const scoring of list) {
      const before: Known | null = known;
      const outcome = merge(before, scoring, licensed);
      if (outcome.kind === 'unchanged') continue;
      known = outcome.known;
      if (before === null) {
        assert.deepEqual([outcome.kind, known.version], ['created', 1]);
        continue;
      }
      const changed: boolean = JSON.stringify(visible(before)) !== JSON.stringify(visible(known));
      assert.equal(outcome.kind, changed ? 'updated' : 'rescored');
      assert.equal(known.version, before.version + (changed ? 1 : 0));
    }
  });
});

test('first_detected_at is the earliest one, and exact if an exact row had it', () => {
  forAll(100, scorings, (list) => {
    const { match } = mergeAll(list, false);
    const times = list.map((scoring) => scoring.match.first_detected_at).sort();
    assert.equal(match.first_detected_at, times[0]);
    const earliest = list.filter((scoring) => scoring.match.first_detected_at === times[0]);
    const isEstimated = earliest.every((scoring) => scoring.match.first_detected_estimated);
    assert.equal(match.first_detected_estimated, isEstimated);
  });
});

test('every other field comes from the row scored last', () => {
  const others = ({ first_detected_at: _, first_detected_estimated: __, ...rest }: Match) => rest;
  forAll(100, scorings, (list) => {
    const { match, exported_at_given } = mergeAll(list, true);
    const scored = list.map((scoring) => scoring.match.last_scored_at).sort();
    const candidates = list.filter((scoring) => scoring.match.last_scored_at === scored.at(-1));
    // Of rows scored at the same time, the latest exported_at wins; absent is the earliest.
    const exported = candidates.map((scoring) => scoring.exported_at_given ?? '').sort();
    assert.equal(exported_at_given ?? '', exported.at(-1));
    const winners = candidates.filter((scoring) => (scoring.exported_at_given ?? '') === exported.at(-1));
    const texts = winners.map((winner) => JSON.stringify(others(winner.match)));
    assert.ok(texts.includes(JSON.stringify(others(match))));
  });
});

const ROW: ExportRow = {
  ...EMPTY_ROW,
  subscription_id: 7001,
  source_internal_id: 1,
  article_id: 1,
  first_detected_at: '2026-11-20T08:00:00Z',
  last_scored_at: '2026-11-20T08:00:00Z',
  strength_score: 60,
  article_url: 'https://example.com/a',
};

const scoring = (members: Partial<ExportRow> = {}) => scoringOf('text', { ...ROW, ...members });
const known = (members: Partial<ExportRow> = {}, licensed = false) => mergeAll([scoring(members)], licensed);

test('a print URL is stored but withheld without the licence, and shown with it', () => {
  const print = { article_print: true };
  assert.equal(shownUrl(ROW.article_url, true, false), null);
  assert.equal(shownUrl(ROW.article_url, true, true), ROW.article_url);
  assert.equal(shownUrl(ROW.article_url, false, false), ROW.article_url);
  const withheld = known(print);
  assert.deepEqual([withheld.url_shown, withheld.match.article.url], [null, ROW.article_url]);
  const shown = merge(withheld, scoring(print), true);
  assert.ok(shown.kind === 'updated');
  assert.deepEqual([shown.known.version, shown.known.url_shown], [2, ROW.article_url]);
  // A change of a hidden URL is not a visible change.
  const other = { ...print, article_url: 'https://example.com/b', last_scored_at: '2026-11-20T09:00:00Z' };
  assert.equal(merge(withheld, scoring(other), false).kind, 'rescored');
});

/** The match with members in another order, at all levels, as another version of the program may have stored it. */
function reordered(match: Match): Match {
  const turned = (_: string, value: unknown) =>
    typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value).reverse()) : value;
  return JSON.parse(JSON.stringify(match, turned));
}

/** The match without null members, as a version of the program that does not know them would store it. */
const withoutNulls = (match: Match): Match =>
  JSON.parse(JSON.stringify(match), (_, value: unknown) => (value === null ? undefined : value));

const later = { last_scored_at: '2026-11-20T09:00:00Z' };

test('members in another order, or absent instead of null, make no version', () => {
  assert.notEqual(JSON.stringify(reordered(scoring().match)), JSON.stringify(scoring().match));
  assert.ok(!('headline' in withoutNulls(scoring().match).article));
  for (const form of [reordered, withoutNulls]) {
    const stored: Known = { ...known(), match: form(known().match) };
    assert.equal(merge(stored, scoring(), false).kind, 'unchanged');
    const outcome = merge(stored, scoring(later), false);
    assert.ok(outcome.kind === 'rescored');
    assert.deepEqual(outcome.known, known(later));
    // The reverse: stored in the current form, scored in the other one.
    const other = (given: Scoring): Scoring => ({ ...given, match: form(given.match) });
    assert.equal(merge(known(), other(scoring()), false).kind, 'unchanged');
    assert.equal(merge(known(), other(scoring(later)), false).kind, 'rescored');
  }
});
