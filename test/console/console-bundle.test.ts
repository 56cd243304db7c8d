/** The console's app without a browser: its size and its references. */
import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { commandWords } from '../../src/console/command-line.ts';
import { TOPICS } from '../../src/manual/topics.ts';
import { type FormMember, type OperationForm, operationForms } from '../../src/operations/table.ts';
import { consoleFiles } from '../../src/packed.ts';
import { shellWords } from '../support/shell-words.ts';

const SOURCES = globSync(path.join(import.meta.dirname, '..', '..', 'src', 'console', '*.ts')).map((file) =>
  readFileSync(file, 'utf8'),
);
const COMPRESSED_MAX = 60_000;
const PICTURE_BYTES_MAX = 150_000;

test('the app is under 60 KB compressed, and names no other host', () => {
  const files = consoleFiles();
  assert.deepEqual(Object.keys(files).sort(), ['app.js', 'index.html', 'style.css']);
  const bytes = Object.values(files).map((text) => gzipSync(text).length);
  const all = bytes.reduce((sum, one) => sum + one, 0);
  assert.ok(all < COMPRESSED_MAX, `${all} bytes`);
  // The SVG namespace in a data URL and Preact's namespaces are names, not addresses.
  const named = Object.values(files).flatMap((text) => text.match(/https?:\/\/[a-z0-9.]+/g) ?? []);
  assert.deepEqual([...new Set(named)], ['http://www.w3.org']);
});

test('its screenshot in README is small', () => {
  const { size } = statSync(path.join(import.meta.dirname, '..', '..', 'src', 'manual', 'console.png'));
  assert.ok(size < PICTURE_BYTES_MAX, `${size} bytes`);
});

test('raw markup is inserted only for the manual', () => {
  const taking = SOURCES.filter((text) =>
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc/i.test(text),
  );
  assert.equal(taking.length, 1);
  assert.match(taking[0] ?? '', /The manual of this very version/);
});

test('each question mark links to a topic of the manual', () => {
  const named = SOURCES.flatMap((text) =>
    [...text.matchAll(/\bhelp: '([^']+)'/g)].map(([, topic = '']) => topic),
  );
  assert.ok(named.length > 10);
  const topics = TOPICS.map(({ name }) => name);
  assert.deepEqual(
    named.filter((topic) => !topics.includes(topic)),
    [],
  );
});

test('the command shown for each form is read as the members that were entered', async () => {
  const program = await createProgram();
  const shown: [string, object, object][] = [];
  for (const form of operationForms()) {
    const given = Object.fromEntries(form.members.map((member) => [member.name, sampleOf(form, member)]));
    const line = commandWords(form, given).join(' ');
    if (form.command !== undefined) assert.match(line, /^wirewatch backup$/);
    else shown.push([line, given, typed(program, line)]);
  }
  assert.ok(shown.length > 12);
  for (const [line, given, read] of shown) assert.deepEqual(read, given, line);
});

function sampleOf(form: OperationForm, { name, several }: FormMember): unknown {
  assert.ok(name in SAMPLES, `a sample of ${name}`);
  if (name === 'id' && form.name.startsWith('subscription')) return '7001';
  if (form.name === 'lab clock') return { when: '26h', advance: '+26h', to: '2026-03-29T00:00Z' }[name];
  if (form.name === 'lab fault clear') return 'f1';
  const sample = SAMPLES[name];
  return Array.isArray(sample) && several === 'no' ? sample[0] : sample;
}

/** As JSON; of lists, as many items as may be given. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  id: 'abcdefghij23',
  account: 'acme',
  name: 'Ada\'s "desk" $HOME',
  scopes: 'detections:read,reports:read',
  subscriptions: '7001,7002:text',
  content_types: 'text,image',
  time_zone: 'Europe/Berlin',
  expires: '2099-01-01T00:00:00Z',
  allow_address: ['192.0.2.0/24', '2001:db8::1'],
  daily_rows: '5000',
  print_metadata: 'on',
  overlap: '1h',
  export: 'newswire',
  start: ['2026-11-21T10:10:00Z', '2026-11-21T10:20:00Z'],
  all: 'on',
  from: '2026-11-01T00:00:00Z',
  to: '2026-11-02T00:00:00Z',
  rows: '3',
  subscription: '7002',
  age: '3d',
  endpoint: 'listChanges',
  status: '429',
  code: 'rate_limited',
  retry_after: '7',
  retry_after_date: 'on',
  delay: '500ms',
  slow: '100',
  cut_after: '200',
  truncate: '150',
  corrupt: 'on',
  close: 'on',
  reset: 'on',
  empty_page: 'on',
  duplicate: 'on',
  page_rows: '2',
  pages: '2',
  times: '3',
  after: '1',
  probability: '0.5',
  when: '26h',
  advance: '+26h',
};

/** What the command line makes of a line that a shell has read. */
function typed(program: Command, line: string): object {
  const [, ...words] = shellWords(line);
  let command = program;
  for (let below: Command | undefined = command; below !== undefined; ) {
    command = below;
    below = command.commands.find((one) => one.name() === words[0]);
    if (below !== undefined) words.shift();
  }
  let read: object = {};
  command.action(() => {
    const operands = command.registeredArguments.map((one, at) => [one.name(), command.processedArgs[at]]);
    const options = Object.entries(command.opts()).map(([name, value]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value === true ? 'on' : value,
    ]);
    read = Object.fromEntries([...operands, ...options].filter(([, value]) => value !== undefined));
  });
  command.parse(words, { from: 'user' });
  return read;
}
