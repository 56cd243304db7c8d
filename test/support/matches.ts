/** Generators of export rows for property tests: few detections, whose values often collide. */
import fc from 'fast-check';
import type { ContentType } from '../../src/detection/content-type.ts';
import { EMPTY_ROW, type ExportRow } from '../../src/detection/fields.ts';
import { type Match, readMatch, renderRow } from '../../src/detection/match.ts';
import type { Scoring } from '../../src/detection/merge.ts';

export const EXPORTED_AT_DEFAULT = '2026-11-21T12:00:00Z';

const time = fc.integer({ min: 0, max: 3 }).map((second) => `2026-11-20T08:00:0${second}Z`);
const orNull = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { freq: 2 });

/** Rows of few detections of one content type, with few different times, so that ties are common. */
export function exportRow(contentType: ContentType): fc.Arbitrary<ExportRow> {
  const text = contentType === 'text';
  const ofText = <Value>(arbitrary: fc.Arbitrary<Value>) => (text ? orNull(arbitrary) : fc.constant(null));
  const ofImage = <Value>(arbitrary: fc.Arbitrary<Value>) => (text ? fc.constant(null) : orNull(arbitrary));
  const columns = fc.record({
    subscription_id: fc.constantFrom(7001, 7002),
    source_internal_id: fc.constantFrom(1, 2),
    article_id: fc.constantFrom(1, 2),
    first_detected_at: time,
    last_scored_at: time,
    strength_score: fc.constantFrom(0, 24.999, 25, 60, 99),
    first_detected_estimated: fc.boolean(),
    exported_at: orNull(time),
    source_id: orNull(fc.constantFrom('urn:a', 'urn:b')),
    source_published_at: orNull(time),
    source_language: ofText(fc.constantFrom('en', 'de')),
    source_syndicated: ofText(fc.boolean()),
    source_sentences: ofText(fc.constantFrom(0, 7)),
    source_image_url: ofImage(fc.constant('https://photos.example.org/1.jpg')),
    source_origin_url: ofImage(fc.constant('https://origin.example.org/1')),
    strength_matched_sentences: ofText(fc.constantFrom(1, 2)),
    strength_article_sentences: ofText(fc.constantFrom(10, 20)),
    article_url: orNull(fc.constantFrom('https://example.com/a', 'https://example.com/b')),
    article_domain: orNull(fc.constant('example.com')),
    article_published_at: orNull(time),
    article_headline: orNull(fc.constantFrom('"A" \\ \u0001', 'ü')),
    article_publisher_id: orNull(fc.constantFrom(1, 2)),
    article_publisher_name: orNull(fc.constantFrom('One', 'Two')),
    article_print: text ? fc.boolean() : fc.constant(false),
    article_image_url: ofImage(fc.constant('https://cdn.example.com/1.jpg')),
  });
  return columns.map((row) => ({ ...EMPTY_ROW, ...row }));
}

export const contentType = fc.constantFrom<ContentType>('text', 'image');

export function matchOfRow(type: ContentType, row: ExportRow): Match {
  const photoPath = (id: number) => `/photos/${id}?signature=abc`;
  return readMatch(renderRow(type, row, { exportedAtDefault: EXPORTED_AT_DEFAULT, photoPath }));
}

export function scoringOf(type: ContentType, row: ExportRow): Scoring {
  return { match: matchOfRow(type, row), exported_at_given: row.exported_at };
}
