/** The settings of an export: the shape of its files. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { type ConfigSources, loadConfig } from '../../src/config/load.ts';
import { Refused } from '../../src/refused.ts';
import { testFolder } from '../support/test-folder.ts';

const folder = testFolder();

/** The error message of an invalid configuration. */
function refusal(sources: Partial<ConfigSources>): string {
  try {
    loadConfig({ flags: {}, env: {}, file: undefined, dataFolder: folder, ...sources });
  } catch (error) {
    assert.ok(error instanceof Refused, String(error));
    return error.message;
  }
  return assert.fail('it was accepted');
}

function refusalOf(text: string): string {
  const file = path.join(folder, 'wirewatch.toml');
  writeFileSync(file, text);
  return refusal({ file });
}

test('the shape of an export: every wrong column, value and combination is named', () => {
  const wrong = refusalOf(`[exports.newswire]
columns = { subscription = "Kunde", article_image_url = "Bild" }
values = { article_print = { J = "yes" } }
constants = { source_language = 7, source_published_at = 2026-01-01T00:00:00Z }
csv = { delimiter = ";;", encoding = "latin-99", header = ["a", "a"] }
time_format = "DD.MM HH:mm"
time_zone = "Berlin"
file_name = "hits_{YYYYMMDD}.csv"
`);
  for (const part of [
    '[exports.newswire] columns: subscription: newswire files have no such column; did you mean subscription_id?',
    'article_image_url: newswire files have no such column',
    'values: article_print.J: expected true or false, found "yes"',
    'constants: source_language: expected a string',
    'csv: delimiter: expected one character',
    'csv: encoding: expected a label',
    'csv: header: expected the name of each column',
    'time_format: expected empty, or a format',
    'time_zone: expected empty, an IANA time zone',
    'file_name: expected empty, or the name of a file',
  ])
    assert.ok(wrong.includes(part), `${part}\n${wrong}`);
  assert.ok(!wrong.includes('source_published_at'), wrong);
  const section = (text: string) => refusalOf(`[exports.newswire]\n${text}\n`);
  assert.match(section('time_format = "DD.MM.YYYY"'), /set time_zone, too/);
  assert.match(section('columns = { source_id = "a" }\nconstants = { source_id = "b" }'), /also in columns/);
  assert.match(section('columns = { source_id = "a" }\ncsv.header = ["b"]'), /csv\.header has no such name/);
  assert.match(section('columns = { source_id = 7 }'), /expected a table such as/);
  assert.match(
    refusal({ env: { WIREWATCH_EXPORTS_NEWSWIRE_COLUMNS: 'source_id: a' } }),
    /expected a table such as/,
  );
});
