/** `wirewatch check`: addresses, certificates and proxies. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { check } from '../support/check.ts';
import { inFolder, runProgram } from '../support/program.ts';

test('unencrypted keys on the network are reported by the check, and once by the start', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const isReported = async (...args: string[]) => {
      const { status, what_to_do } = (await check(data, '--port', '0', ...args)).of('TLS');
      if (status === 'warn') assert.match(what_to_do ?? '', /tls_certificate.*trusted_proxies/);
      const running = runProgram(['serve', '--data', data, '--port', '0', ...args]);
      await running.url();
      await running.stop();
      const lines = running.log().filter(({ msg }) => msg.startsWith('keys cross the network in the clear'));
      return [status, lines.length];
    };
    assert.deepEqual(await isReported('--host', '0.0.0.0'), ['warn', 1]);
    assert.deepEqual(await isReported(), ['ok', 0]);
  }));

test("a proxy on this machine passes each client's address; an untrusted proxy is reported", () =>
  inFolder(async (folder) => {
    const statuses = async (name: string, ...proxies: string[]) => {
      const data = join(folder, name);
      const file = `${data}.toml`;
      const trusted = `trusted_proxies = ${JSON.stringify(proxies)}`;
      writeFileSync(file, `[server]\nport = 0\n${trusted}\n[limits]\nunseen_key_ids_per_minute = 1\n`);
      const running = runProgram(['serve', '--data', data, '--config', file]);
      const url = await running.url();
      const found: number[] = [];
      for (const address of ['198.51.100.1', '198.51.100.1', '198.51.100.2']) {
        const headers = { authorization: `Bearer ${createKey('ww').key}`, 'x-forwarded-for': address };
        found.push((await fetch(`${url}/v1/me`, { headers })).status);
      }
      const hasAlert = () => running.log().some(({ alert }) => alert === 'proxy not trusted');
      if (proxies.length > 0) await running.until('the alert', () => hasAlert() || undefined);
      const alerts = (await check(data, '--config', file)).findings.filter(({ check }) => check === 'alert');
      await running.stop();
      return [...found, alerts.some(({ detail }) => detail.startsWith('proxy not trusted:')), hasAlert()];
    };
    assert.deepEqual(await statuses('default'), [401, 429, 401, false, false]);
    assert.deepEqual(await statuses('untrusted', 'none'), [401, 429, 429, true, true]);
  }));
