/** Random detections and filters, and the meaning of each filter without SQL. */
import fc from 'fast-check';
import { bandStep } from '../../src/detection/band.ts';
import type { ContentType } from '../../src/detection/content-type.ts';
import type { DetectionFilters } from '../../src/query/filters.ts';
import { type TestRow, testMatch } from './store.ts';

export const NO_FILTERS: DetectionFilters = {
  publisher_id: null,
  exclude_publisher_id: null,
  domain: null,
  exclude_domain: null,
  min_band: null,
  band: null,
  min_score: null,
  print: null,
  source_id: null,
  article_id: null,
};
const contentType = fc.constantFrom<ContentType>('text', 'image');
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const publisher = fc.integer({ min: 1, max: 3 });
const domain = fc.constantFrom('a.example', 'b.example', 'c.example');
const sourceId = fc.constantFrom('urn:1', 'urn:2', 'URN:1');

export const testRow: fc.Arbitrary<TestRow> = fc.record({
  content_type: contentType,
  version: fc.integer({ min: 1, max: 3 }),
  row: fc.record({
    subscription_id: fc.constantFrom(7001, 7002, 7003),
    source_internal_id: fc.integer({ min: 0, max: 3 }),
    article_id: fc.integer({ min: 1, max: 3 }),
    strength_score: fc.oneof(
      fc.constantFrom(0, 24.99, 25, 29.5, 30, 49.5, 50, 60, 75, 94.9, 95, 99),
      fc.double({ min: 0, max: 99, noNaN: true }),
    ),
    article_publisher_id: maybe(publisher),
    article_domain: maybe(domain),
    article_print: fc.boolean(),
    source_id: maybe(sourceId),
  }),
});

const list = <Value>(value: fc.Arbitrary<Value>) =>
  maybe(fc.uniqueArray(value, { minLength: 1, maxLength: 3 }));
const filters: fc.Arbitrary<DetectionFilters> = fc.record({
  publisher_id: list(publisher),
  exclude_publisher_id: list(publisher),
  domain: list(domain),
  exclude_domain: list(domain),
  min_band: maybe(fc.integer({ min: 0, max: 4 })),
  band: list(fc.integer({ min: 0, max: 4 })),
  min_score: maybe(fc.integer({ min: 0, max: 100 })),
  print: maybe(fc.boolean()),
  source_id: maybe(sourceId),
  article_id: maybe(fc.integer({ min: 1, max: 3 })),
});
/** At most two at a time: almost no row would pass all of them. */
export const someFilters = fc
  .tuple(filters, fc.subarray(Object.keys(NO_FILTERS) as (keyof DetectionFilters)[], { maxLength: 2 }))
  .map(([all, names]) => ({ ...NO_FILTERS, ...Object.fromEntries(names.map((name) => [name, all[name]])) }));

/** Whether a row passes the filters, by the contract's rules. */
export function passes(row: TestRow, f: DetectionFilters): boolean {
  const match = testMatch(row);
  const publisherId = match.article.publisher?.id ?? null;
  const host = match.article.domain;
  const step = bandStep(match.content_type, match.strength.score);
  return (
    (f.publisher_id === null || (publisherId !== null && f.publisher_id.includes(publisherId))) &&
    (f.exclude_publisher_id === null ||
      publisherId === null ||
      !f.exclude_publisher_id.includes(publisherId)) &&
    (f.domain === null || (host !== null && f.domain.includes(host))) &&
    (f.exclude_domain === null || host === null || !f.exclude_domain.includes(host)) &&
    (f.min_band === null || step >= f.min_band) &&
    (f.band === null || f.band.includes(step)) &&
    (f.min_score === null || Math.floor(match.strength.score + 0.5) >= f.min_score) &&
    (f.print === null || (match.article.print ?? false) === f.print) &&
    (f.source_id === null || match.source.id === f.source_id) &&
    (f.article_id === null || match.article.id === f.article_id)
  );
}
