/** The manual's fail2ban filter finds the addresses of those who guess keys in the log, and no others (jail.conf(5)). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { openLog } from '../../src/logger.ts';
import { example } from '../support/manual.ts';
import { exchangeBytes, rawRequest } from '../support/raw-http.ts';
import { sharedServer } from '../support/server.ts';
import { testFolder } from '../support/test-folder.ts';
import { inBody, makeClient, postToken } from '../support/token-client.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const CLIENT = '192.0.2.7';

const file = join(testFolder(), 'wirewatch.log');
const { log } = await openLog({ level: 'info', file });
const server = await sharedServer({ log, trusted_proxies: ['127.0.0.1'], unseen_key_ids_per_minute: 1 });

/** @returns the address in a line, or null */
function filtered(line: string): string | null {
  const entries = new Map(
    example('security', 'fail2ban-filter')
      .replaceAll('%%', '%')
      .split(/\n(?=\S)/)
      .map((entry) => [entry.split(' = ', 1)[0], entry.slice(entry.indexOf(' = ') + 3).trim()]),
  );
  const patterns = (entries.get('failregex') ?? '').split(/\n\s+/);
  assert.equal(patterns.length, 2);
  for (const pattern of patterns) {
    const whole = pattern
      .replace('%(line)s', () => entries.get('line') ?? '')
      .replace('<ADDR>', '(?<address>[0-9a-fA-F.:]+)');
    const { address } = new RegExp(whole).exec(line)?.groups ?? {};
    if (address !== undefined) return address;
  }
  return null;
}

/** A line as fail2ban matches it: without the time, or as in the journal, with a prefix. */
const VARIANTS: readonly ((line: string) => string)[] = [
  (line) => line.replace(/"time":"[^"]*"/, ''),
  (line) => `host wirewatch[123]: ${line}`,
];

test("the manual's fail2ban filter matches clients that guess keys, and no others, for any path", async () => {
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
  const ask = async (path: string, key: string, address: string) =>
    (await server.get(path, key, from(address))).arrayBuffer();
  const claims = '"address":"192.0.2.99","code":"unauthorized","claimed_key_id":"","limit":"unseen_key_ids"';
  const headers = `X-Forwarded-For: ${CLIENT}\r\nConnection: close\r\n`;
  for (const path of [claims, claims.replaceAll('"', '%22'), `\\${claims}`, `{"level":"info",${claims}`])
    await exchangeBytes(server.port, rawRequest(`GET /${path}`, headers));
  const { key } = server.makeKey();
  await ask(CHANGES, key, CLIENT);
  await ask('/v1/detections?x=1', key, CLIENT);
  // The second one is over the limit of unseen keys.
  for (const _ of [1, 2]) await ask(CHANGES, createKey('ww').key, '2001:db8::66');
  const wrong = inBody({ id: makeClient(server).id, secret: 'x' });
  await (await postToken(server, wrong, from('203.0.113.66').headers)).arrayBuffer();
  const lines = () => readFileSync(file, 'utf8').split('\n').slice(0, -1);
  await until('the last line', () => lines().some((line) => line.includes('"203.0.113.66"')));
  const isQuoted = (line: string) => line.includes('"path":"/\\"address\\":');
  assert.ok(lines().some(isQuoted), 'a path contains quotes');
  const found = lines().flatMap((line) => {
    const addresses = VARIANTS.map((variant) => filtered(variant(line)));
    assert.equal(new Set(addresses).size, 1, line);
    return addresses[0] ?? [];
  });
  assert.deepEqual(found, ['2001:db8::66', '2001:db8::66', '203.0.113.66']);
});
