/** Exports of another shape, from the drop to the archive and back, by the real program. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';

const SHAPE = {
  WIREWATCH_EXPORTS_NEWSWIRE_COLUMNS:
    '{ subscription_id = "Kunde", source_internal_id = "Meldung", article_id = "Artikel", first_detected_at = "gefunden", last_scored_at = "bewertet", strength_score = "Anteil", article_headline = "Titel" }',
  WIREWATCH_EXPORTS_NEWSWIRE_VALUES:
    '{ subscription_id = { ACME = 7001 }, article_headline = { "\\\\N" = "" } }',
  WIREWATCH_EXPORTS_NEWSWIRE_CONSTANTS: '{ source_language = "de" }',
  WIREWATCH_EXPORTS_NEWSWIRE_CSV: '{ delimiter = ";", encoding = "windows-1252" }',
  WIREWATCH_EXPORTS_NEWSWIRE_TIME_FORMAT: 'DD.MM.YYYY HH:mm',
  WIREWATCH_EXPORTS_NEWSWIRE_TIME_ZONE: '+01:00',
  WIREWATCH_EXPORTS_NEWSWIRE_DECIMAL: ',',
  WIREWATCH_EXPORTS_NEWSWIRE_FILE_NAME: 'treffer_{YYYYMMDD}_{HHmm}.txt',
};
const HEADER = 'Kunde;Meldung;Artikel;gefunden;bewertet;Anteil;Titel';

const appliance = await sharedAppliance(SHAPE);

/** A file of the next window as the agency names and writes it. */
function theirs(article: number, more: { readonly anteil?: string; readonly header?: string } = {}) {
  const local = formatMs(nextWindowMs() + 3_600_000);
  const [, year, month, day, hour, minute] = /^(\d+)-(\d+)-(\d+)T(\d+):(\d+)/.exec(local) ?? [];
  const time = `${day}.${month}.${year} ${hour}:${minute}`;
  const row = `ACME;9001;${article};${time};${time};${more.anteil ?? '62,5'};Fähre fällt aus`;
  return {
    name: `treffer_${year}${month}${day}_${hour}${minute}.txt`,
    content: Buffer.from(`${more.header ?? HEADER}\n${row}\n`, 'latin1'),
  };
}

test('validate and explain take several files and show what the columns were read as', () => {
  const files = [
    theirs(4),
    theirs(5, { header: HEADER.replace('Kunde', 'Kunden').replace('Anteil', 'anteil') }),
    theirs(6, { header: HEADER.replaceAll(';', ',') }),
  ].map(({ name, content }) => {
    const path = join(appliance.data, name);
    writeFileSync(path, content);
    return path;
  });
  const run = (...args: string[]) => appliance.cli(['ingest', ...args], { anyStatus: true });
  const { status, stdout } = run('validate', ...files);
  assert.equal(status, 1);
  for (const part of [
    /valid: 1 row/,
    /strength_score +Anteil +"62,5" as 62\.5\n/,
    /source_language +\(constant\) +"de"\n/,
    /Kunde \(subscription_id\) \(misspelled as "Kunden"\?\), Anteil \(strength_score\)/,
    /one column: its separator seems to be ","/,
  ])
    assert.match(stdout, part);
  const [first, second] = JSON.parse(run('validate', ...files, '--json').stdout);
  assert.deepEqual([first.valid, second.valid], [true, false]);
  const read = { value: 7001, column_in_file: 'Kunde', value_in_file: 'ACME' };
  assert.deepEqual(first.first_rows[0].columns.subscription_id, read);
  const explained = run('explain', files[0] ?? '');
  assert.equal(explained.status, 0);
  assert.match(explained.stdout, /strength_score +Anteil[\s\S]*it would be applied\./);
});

test('a file is applied, lies in the archive as it came, and is replayed whatever the settings are then', async () => {
  const file = theirs(1);
  const line = await appliance.dropped(file.name, file.content);
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
  assert.ok(readFileSync(join(appliance.drop, String(line.destination))).equals(file.content));
  const detection = await appliance.detection('t.7001.9001.1');
  assert.equal(detection?.article.headline, 'Fähre fällt aus');
  assert.deepEqual([detection?.strength.score, detection?.source.language], [62.5, 'de']);
  assert.equal((await appliance.dropped(file.name, file.content)).msg, 'file repeated');

  const none = Object.fromEntries(Object.keys(SHAPE).map((name) => [name, '']));
  await appliance.restart({ ...none, WIREWATCH_EXPORTS_NEWSWIRE_DECIMAL: '.' });
  const replayed = JSON.parse(appliance.cli(['ingest', 'replay', '--json']).stdout);
  assert.deepEqual([replayed.files, replayed.unchanged, replayed.unreadable], [1, 1, []]);
  const own = newRow({ article_headline: 'in our own form' });
  const name = `newswire.${formatMs(nextWindowMs()).replaceAll(/[-:]/g, '').slice(0, 13)}Z.ndjson`;
  assert.equal((await appliance.dropped(name, ndjson([own]))).msg, 'file applied');
  await appliance.restart();
});

test('the same file is read again under a changed mapping', async () => {
  const file = theirs(2);
  await appliance.dropped(file.name, file.content);
  await appliance.restart({ WIREWATCH_EXPORTS_NEWSWIRE_CONSTANTS: '{ source_language = "nds" }' });
  assert.equal((await appliance.dropped(file.name, file.content)).msg, 'file applied');
  assert.equal((await appliance.detection('t.7001.9001.2'))?.source.language, 'nds');
});

test('a failed file names its own columns, and is read after a correction of the settings', async () => {
  const file = theirs(3, { anteil: '62.5' });
  const line = await appliance.dropped(file.name, file.content);
  assert.equal(line.msg, 'file failed', JSON.stringify(line));
  const { errors, next } = exportTrials(() => appliance).reasonBeside(line.destination);
  const { expected: _, ...error } = errors[0];
  assert.deepEqual(error, { line: 2, column: 'strength_score', column_in_file: 'Anteil', value: '62.5' });
  await appliance.restart({ WIREWATCH_EXPORTS_NEWSWIRE_DECIMAL: '.' });
  const start = /run: wirewatch window reset newswire (\S+)/.exec(next)?.[1] ?? '';
  appliance.cli(['window', 'reset', 'newswire', start]);
  assert.equal((await appliance.detection('t.7001.9001.3'))?.strength.score, 62.5);
});
