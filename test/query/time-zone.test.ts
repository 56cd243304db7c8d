/** Days in time zones, especially those on which clocks change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { zoneId } from '../../src/time-zone.ts';
import { dayAt, dayEndMs, dayStartMs, daysFromTo, isDay } from '../../src/zone-days.ts';
import { forAll } from '../support/for-all.ts';
import { words } from '../support/words.ts';

/** Zone, day, its first instant, the first instant after it. */
const DAYS: readonly (readonly [zone: string, day: string, start: string, end: string])[] = [
  ['UTC', '2026-11-21', '2026-11-21T00:00:00Z', '2026-11-22T00:00:00Z'],
  // Clocks change during the day: it has 23 or 25 hours.
  ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z'],
  ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z'],
  ['America/New_York', '2026-03-08', '2026-03-08T05:00:00Z', '2026-03-09T04:00:00Z'],
  ['America/New_York', '2026-11-01', '2026-11-01T04:00:00Z', '2026-11-02T05:00:00Z'],
  // Midnight is skipped: the day starts, and the previous one ends, at 01:00.
  ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00Z', '2018-11-05T02:00:00Z'],
  ['America/Sao_Paulo', '2018-11-03', '2018-11-03T03:00:00Z', '2018-11-04T03:00:00Z'],
  // Clocks go from 23:30 to 00:30: the day starts half an hour after its skipped midnight.
  ['America/Toronto', '1919-03-31', '1919-03-31T04:30:00Z', '1919-04-01T04:00:00Z'],
  // The hour before midnight occurs twice, and so does midnight itself.
  ['America/Sao_Paulo', '2018-02-17', '2018-02-17T02:00:00Z', '2018-02-18T03:00:00Z'],
  ['America/Havana', '2026-11-01', '2026-11-01T04:00:00Z', '2026-11-02T05:00:00Z'],
  // Offsets that are not whole hours.
  ['Asia/Kathmandu', '2026-11-21', '2026-11-20T18:15:00Z', '2026-11-21T18:15:00Z'],
  ['Australia/Lord_Howe', '2026-10-04', '2026-10-03T13:30:00Z', '2026-10-04T13:00:00Z'],
  // Samoa crossed the date line: this day did not exist.
  ['Pacific/Apia', '2011-12-29', '2011-12-29T10:00:00Z', '2011-12-30T10:00:00Z'],
  ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00Z', '2011-12-30T10:00:00Z'],
  ['Pacific/Apia', '2011-12-31', '2011-12-30T10:00:00Z', '2011-12-31T10:00:00Z'],
];

for (const [zone, day, start, end] of DAYS) {
  test(`${day} in ${zone} is from ${start} to ${end}`, () => {
    assert.equal(dayStartMs(day, zone), Date.parse(start));
    assert.equal(dayEndMs(day, zone), Date.parse(end));
  });
}

test('days follow each other without gap or overlap, and an instant lies in the day that clocks show', () => {
  const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
  const instants = fc.integer({ min: Date.parse('1975-01-01'), max: Date.parse('2037-01-01') });
  forAll(300, zones, instants, (zone, ms) => {
    const day = dayAt(ms, zone);
    const numbers = { year: 'numeric', month: '2-digit', day: '2-digit' } as const;
    const shown = new Intl.DateTimeFormat('en-CA', { timeZone: zone, ...numbers });
    assert.equal(day, shown.format(ms));
    assert.ok(dayStartMs(day, zone) <= ms);
    assert.equal(dayAt(dayStartMs(day, zone), zone), day);
    const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
    assert.equal(dayEndMs(day, zone), dayStartMs(next, zone));
    assert.ok(dayEndMs(day, zone) > ms || dayAt(dayEndMs(day, zone), zone) !== next);
  });
});

test('a day is a calendar day, written in full', () => {
  for (const text of words('2026-11-21 2024-02-29 2000-02-29 0001-01-01 9999-12-31'))
    assert.ok(isDay(text), text);
  const others = words(`
    2026-02-29 1900-02-29 2026-04-31 2026-13-01 2026-01-00 0000-01-01 2026-1-1 2026-W47-6 2026-11-21Z ２０２６-11-21`);
  for (const text of ['', ' 2026-11-21', ...others]) assert.ok(!isDay(text), JSON.stringify(text));
});

test('days are counted inclusively', () => {
  assert.equal(daysFromTo('2026-03-29', '2026-03-29'), 1);
  assert.equal(daysFromTo('2026-03-01', '2026-03-31'), 31);
  assert.equal(daysFromTo('2024-02-01', '2024-03-01'), 30);
});

test('spellings of a zone name are normalized', () => {
  assert.equal(zoneId('europe/BERLIN'), zoneId('Europe/Berlin'));
  assert.equal(zoneId('Europe/Kyiv'), zoneId('europe/kiev'));
  assert.throws(() => zoneId('Europe/Nowhere'));
});
