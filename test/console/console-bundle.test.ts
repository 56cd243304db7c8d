/** The console's app without a browser: its size and its references. */
import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Command } from 'commander';
import type { Action } from '../../src/admin/console/api.ts';
import { createProgram } from '../../src/cli/program.ts';
import { actionText, isThisMachine } from '../../src/console/format.ts';
import { TOPICS } from '../../src/manual/topics.ts';
import { consoleFiles } from '../../src/packed.ts';

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

test('an address of this machine is known in every form that the URL parser reads', () => {
  const own = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.8.9.10',
    '0.0.0.0',
    '0',
    '0.1',
  ];
  const names = [
    'localhost',
    'LocalHost.',
    'a.b.localhost',
    'ⓛocalhost',
    'ip6-loopback',
    'localhost.localdomain',
  ];
  const v6 = ['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'];
  for (const host of [...own, ...names, ...v6, '[::ffff:0.0.0.0]', 'user:pass@127.0.0.1'])
    for (const address of [`http://${host}/`, `https://${host}:9464/path?query#part`])
      assert.ok(isThisMachine(address), address);
  const others = ['www.example.com', '127.example.com', 'localhost.example.com', 'notlocalhost', '128.0.0.1'];
  for (const host of [...others, '[2001:db8::1]', '[::ffff:192.0.2.1]', '1.0.0.0'])
    assert.ok(!isThisMachine(`http://${host}/?of=127.0.0.1`), host);
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

test('the command shown for each action is valid', async () => {
  const program = await createProgram();
  const start = { export: 'newswire', window_start: '2026-11-21T10:10:00Z' } as const;
  const actions: readonly Action[] = [
    ...(['ingest-pause', 'ingest-resume', 'backup', 'scrub', 'ingest-replay'] as const).map((kind) => ({
      kind,
    })),
    ...(['window-reset', 'window-accept', 'window-expect'] as const).map((kind) => ({ kind, ...start })),
    ...(['key-rotate', 'key-revoke', 'account-suspend', 'account-resume'] as const).map((kind) => ({
      kind,
      id: 'x',
    })),
    { kind: 'key-create', account: 'x', name: 'x', scopes: [], subscriptions: [] },
  ];
  for (const action of actions) {
    const [, ...words] = actionText(action).command.split(' ');
    let command: Command = program;
    for (const word of words) {
      const below = command.commands.find((one) => one.name() === word);
      if (below !== undefined) command = below;
      else if (word.startsWith('--'))
        assert.ok(
          command.options.some(({ long }) => long === word),
          `${action.kind}: ${word}`,
        );
    }
    assert.notEqual(command, program, action.kind);
    assert.equal(command.commands.length, 0, action.kind);
  }
});
