/** Basic rules: bands, ids, streams and rendered matches. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BANDS, bandStep } from '../../src/detection/band.ts';
import { NUMBER_MAX } from '../../src/detection/content-type.ts';
import { FIELDS } from '../../src/detection/fields.ts';
import { formatDetectionId, isDetectionId } from '../../src/detection/id.ts';
import {
  BASE_URL_MARK,
  readMatch,
  renderDetection,
  renderedMatchOf,
  renderMatch,
  renderStreamRow,
} from '../../src/detection/match.ts';
import { forAll } from '../support/for-all.ts';
import { contentType, exportRow, matchOfRow } from '../support/matches.ts';
import { words } from '../support/words.ts';

test('text bands begin at 25, 50, 75 and 95, image bands at 30 and 60', () => {
  const bands = (type: 'text' | 'image', scores: readonly number[]) =>
    scores.map((score) => BANDS[bandStep(type, score)]);
  const text = bands('text', [0, 24.999999, 25, 49.999999, 50, 74.999999, 75, 94.999999, 95, 100]);
  assert.deepEqual(text, words('off off low low medium medium high high max max'));
  const image = bands('image', [0, 29.999999, 30, 59.999999, 60, 99]);
  assert.deepEqual(image, words('low low medium medium high high'));
});

const any = fc.maxSafeNat().map((value) => value % (NUMBER_MAX + 1));
const number = fc.oneof(fc.constantFrom(0, 1, NUMBER_MAX), any);

test('every formed id is valid, and no two detections share one', () => {
  const parts = fc.tuple(contentType, number, number, number);
  forAll(100, parts, parts, (a, b) => {
    const [one, other] = [formatDetectionId(...a), formatDetectionId(...b)];
    assert.ok(isDetectionId(one));
    assert.equal(one === other, JSON.stringify(a) === JSON.stringify(b));
  });
});

test('ids have one form', () => {
  for (const id of ['t.1.0.0', 'i.999999999999999.999999999999999.0', 't.0.1.10'])
    assert.ok(isDetectionId(id), id);
  const others = words(`
    t.1.2 t.1.2.3.4 x.1.2.3 T.1.2.3 t.01.2.3 t.1.+2.3 t.1.2.-3 t.1.2.1000000000000000 t.1..3 t.1.2.٣`);
  for (const id of ['', 't.1.2.3 ', 't.1.2.3\n', ...others])
    assert.ok(!isDetectionId(id), JSON.stringify(id));
});

const match = contentType.chain((type) => exportRow(type).map((row) => matchOfRow(type, row)));

test('a rendered match is parsed back', () => {
  forAll(100, match, fc.integer({ min: 1 }), (given, version) => {
    const rendered = renderMatch(given);
    assert.deepEqual(readMatch(rendered), given);
    const { content_type, subscription_id, source, article } = given;
    const id = formatDetectionId(content_type, subscription_id, source.internal_id, article.id);
    assert.equal(renderedMatchOf(renderDetection(id, version, rendered)), rendered);
    const shown = JSON.parse(
      renderStreamRow(id, version, rendered).replace(BASE_URL_MARK, 'https://example.org'),
    );
    const event = version === 1 ? 'created' : 'updated';
    assert.deepEqual([shown.id, shown.version, shown.event], [id, version, event]);
  });
});

test('only the URL of one of our own photos has the base address mark, whatever the text', () => {
  const tricky = '"image_url":"\u0001/photos/1';
  forAll(100, contentType, exportRow('image'), (type, row) => {
    const given = matchOfRow(type, { ...row, source_id: tricky, article_headline: tricky });
    const marks = renderMatch(given).split(BASE_URL_MARK).length - 1;
    assert.equal(marks, type === 'image' && row.source_image_url === null ? 1 : 0);
    assert.deepEqual(readMatch(renderMatch(given)), given);
  });
});

test('a detection has all fields of its content type, in order', () => {
  forAll(100, match, (given) => {
    const shown = JSON.parse(renderStreamRow('id', 1, renderMatch(given)).replace(BASE_URL_MARK, 'x'));
    const isNull = (path: string) =>
      given.article.publisher === null && path.startsWith('article.publisher.');
    const expected = FIELDS.filter(({ content_types }) => content_types.includes(given.content_type))
      // Null stands for its members.
      .map(({ path }) => (isNull(path) ? 'article.publisher' : path));
    assert.deepEqual(pathsOf(shown), [...new Set(expected)]);
  });
});

function pathsOf(value: object, prefix = ''): string[] {
  return Object.entries(value).flatMap(([name, member]) =>
    typeof member === 'object' && member !== null
      ? pathsOf(member, `${prefix}${name}.`)
      : [`${prefix}${name}`],
  );
}
