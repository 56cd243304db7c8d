/** Instants and windows as text and as integers; the names of time zones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  formatMs,
  formatSeconds,
  formatWindowStart,
  parseInstant,
  parseSeconds,
  parseWindowStart,
  utcDay,
  WINDOW_MS,
} from '../../src/time.ts';
import { zoneName } from '../../src/time-zone.ts';
import { forAll } from '../support/for-all.ts';
import { words } from '../support/words.ts';

const FIRST = Date.parse('0001-01-01T00:00:00Z') / 1000;
const LAST = Date.parse('9999-12-31T23:59:59Z') / 1000;
const seconds = fc.integer({ min: FIRST, max: LAST });

test('every formatted second is parsed back', () => {
  forAll(100, seconds, (second) => {
    const text = formatSeconds(second);
    assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(parseSeconds(text), second);
    assert.equal(parseInstant(text), Date.parse(text));
    assert.equal(formatMs(second * 1000 + 999), text);
    assert.equal(utcDay(second * 1000), text.slice(0, 10));
  });
});

test('an offset is subtracted, and a fraction truncated', () => {
  const offset = fc.integer({ min: -1439, max: 1439 });
  const fraction = fc.stringMatching(/^\d{1,12}$/);
  const within = fc.integer({ min: FIRST + 86_400, max: LAST - 86_400 });
  forAll(100, within, offset, fc.option(fraction), (second, minutes, digits) => {
    const local = formatSeconds(second + minutes * 60).slice(0, 19);
    const size = Math.abs(minutes);
    const zone = `${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`;
    const text = `${local}${digits === null ? '' : `.${digits}`}${minutes < 0 ? '-' : '+'}${zone}`;
    const ms = digits === null ? 0 : Number(digits.slice(0, 3).padEnd(3, '0'));
    assert.equal(parseInstant(text), second * 1000 + ms, text);
    assert.equal(parseSeconds(text), second);
  });
});

test('T and Z may be lower case', () => {
  for (const text of ['2026-11-21t10:10:00Z', '2026-11-21T10:10:00z', '2026-11-21t11:10:00.000+01:00'])
    assert.equal(parseInstant(text), Date.UTC(2026, 10, 21, 10, 10), text);
});

test('invalid times are refused', () => {
  const inWords = words(`
    2026-11-21 2026-11-21T10:10Z 2026-11-21T10:10:00 2026-11-21_10:10:00Z 2026-11-21T10:10:00y
    2026-11-21T10:10:00.Z 2026-11-21T10:10:00,5Z 2026-11-21T10:10:00ZZ 2026-11-21T10:10:00+01
    2026-11-21T10:10:00+0100 2026-11-21T10:10:00+24:00 2026-11-21T10:10:00+01:60 2026-11-21T10:10:00+01:00Z
    2026-02-29T00:00:00Z 2100-02-29T00:00:00Z 2026-04-31T00:00:00Z 2026-00-10T00:00:00Z 2026-13-10T00:00:00Z
    2026-11-00T00:00:00Z 2026-11-21T24:00:00Z 2026-11-21T10:60:00Z 2026-11-21T10:10:60Z 0000-12-31T00:00:00Z
    0001-01-01T00:00:00+00:01 9999-12-31T23:59:59-00:01 +02026-11-21T10:10:00Z -0001-11-21T10:10:00Z`);
  const spaced = [
    '2026-11-21 10:10:00Z',
    '2026-11-21T10:10:00Z ',
    ' 2026-11-21T10:10:00Z',
    '2026-11-2 T10:10:00Z',
  ];
  for (const text of [...inWords, ...spaced, '', '2026-11-21T1\u0660:10:00Z'])
    assert.equal(parseInstant(text), null, JSON.stringify(text));
  assert.equal(parseSeconds('2024-02-29T00:00:00Z'), Date.UTC(2024, 1, 29) / 1000);
  assert.equal(parseSeconds('2000-02-29T00:00:00Z'), Date.UTC(2000, 1, 29) / 1000);
  assert.equal(parseSeconds('1969-12-31T23:59:59.5Z'), -1);
});

test('the start of a window is formatted as in file names, and parsed back', () => {
  const last = Math.floor((LAST * 1000) / WINDOW_MS);
  forAll(100, fc.integer({ min: 0, max: last }), (window) => {
    const start = window * WINDOW_MS;
    const text = formatWindowStart(start);
    assert.match(text, /^\d{8}T\d{4}Z$/);
    assert.equal(parseWindowStart(text), start);
  });
  const wrong = words(
    '20261121T1011Z 20261121T1010 20261321T1010Z 20260230T1010Z 20261121T2400Z 2026-11-21T10:10Z',
  );
  for (const text of [...wrong, ' 20261121T1010Z', '20261121T1010Z\n'])
    assert.equal(parseWindowStart(text), null, text);
});

test('time zones are IANA names in any case; offsets and abbreviations are none', () => {
  assert.equal(zoneName('europe/berlin'), 'Europe/Berlin');
  assert.equal(zoneName('utc'), 'UTC');
  for (const name of words('UTC Europe/Kyiv Etc/GMT+3 America/Argentina/Buenos_Aires'))
    assert.equal(zoneName(name), name);
  const wrong = words('+01:00 -0500 BST IST Berlin Europe/Nowhere UTC+1 SystemV/EST5');
  for (const text of [...wrong, '', ' UTC']) assert.equal(zoneName(text), null, text);
});
