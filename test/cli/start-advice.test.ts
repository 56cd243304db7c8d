/** `serve` without preparation: it works, and advises the next step until a key can read. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import type { Serving } from '../../src/cli/serving.ts';
import { adviseOnStart } from '../../src/cli/start-advice.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { onTerminal, terminalMissing } from '../support/terminal.ts';

const MAIN = path.join(import.meta.dirname, '..', '..', 'dist', 'main.cjs');
const NEXT = 'nobody can read yet: there is no key in use. See "wirewatch manual quick-start"';

/** Runs a pasted line. @returns its output */
function paste(line: string): string {
  const quoted = [process.execPath, MAIN].map((part) => `'${part}'`).join(' ');
  const { status, stdout, stderr } = spawnSync('sh', ['-c', `wirewatch() { ${quoted} "$@"; }; ${line}`], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, `${line}: ${stderr}`);
  return stdout;
}

/** The commands that a start advises to paste. */
async function nextOf(run: RunningProgram): Promise<string[]> {
  const line = await run.until('the next steps', () => run.log().find(({ msg }) => msg === NEXT));
  const { next } = line;
  assert.ok(Array.isArray(next));
  return next.map(String);
}

async function stop(run: RunningProgram): Promise<void> {
  run.kill('SIGTERM');
  assert.equal(await run.ended, 0);
}

test('on a fresh folder, the printed commands create a working key; then no advice is shown', async () => {
  await inFolder(async (folder) => {
    // A name that the shell would split without quotes.
    const data = path.join(folder, "the agency's data");
    const serving = ['serve', '--data', data, '--port', '0'];
    const first = runProgram(serving);
    const url = await first.url();
    const next = await nextOf(first);
    assert.deepEqual(
      next.map((line) => line.split(' ').slice(0, 3).join(' ')),
      ['wirewatch account add', 'wirewatch subscription add', 'wirewatch key create'],
    );
    const printed = next.map(paste).join('');
    const [key = ''] = /ww_live_\w+/.exec(printed) ?? [];
    const me = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(me.status, 200);
    await stop(first);
    const created = (run: RunningProgram) =>
      run.log().filter(({ msg }) => msg === `created a new installation in ${data}`).length;
    assert.equal(created(first), 1);

    const second = runProgram(serving);
    await second.url();
    await stop(second);
    assert.equal(created(second), 0);
    assert.equal(
      second.log().find(({ msg }) => msg === NEXT),
      undefined,
    );
  });
});

test('only the missing steps are named, with the existing account and subscription', async () => {
  await inFolder(async (folder) => {
    const data = path.join(folder, 'data');
    const serving = ['serve', '--data', data, '--port', '0'];
    paste(`wirewatch account add daily --name Daily --data ${data}`);
    const first = runProgram(serving);
    const [subscription, , ...more] = await nextOf(first);
    assert.ok(subscription?.includes('subscription add 7001 --account daily '), subscription);
    assert.deepEqual(more, []);
    await stop(first);

    paste(`wirewatch subscription add 42 --account daily --data ${data}`);
    const create = `wirewatch key create --account daily --name Dashboard --scopes detections:read --subscriptions 42 --data ${data}`;
    const id = /ww_live_([a-z2-7]{12})/.exec(paste(create))?.[1];
    paste(`wirewatch key revoke ${id} --yes --data ${data}`);
    const second = runProgram(serving);
    assert.deepEqual(await nextOf(second), [create]);
    await stop(second);
  });
});

test('on a terminal it is a paragraph with commands to paste', { skip: terminalMissing }, async () => {
  await inFolder(async (folder) => {
    const data = path.join(folder, 'data');
    const run = runProgram(
      ['serve', '--data', data, '--port', '0'],
      { NO_COLOR: '1' },
      { through: onTerminal },
    );
    const shown = () => run.stdout().replaceAll('\r', '');
    await run.until('the paragraph', () => /see: wirewatch manual quick-start/.exec(shown()) ?? undefined);
    assert.match(
      shown(),
      /^Wirewatch is listening on http:\/\/127\.0\.0\.1:\d+\. There is no usable API key yet\./m,
    );
    assert.ok(
      shown().includes(`\n  wirewatch account add acme --name "Acme News" --data ${data}\n`),
      shown(),
    );
    assert.ok(shown().includes(`Drop export files into ${path.join(data, 'drop')}\n`));
    await stop(run);
  });
});

test('a start that cannot read access.db for its advice serves anyway, and says so', async () => {
  await inFolder(async (folder) => {
    const warnings: string[] = [];
    const serving = {
      appliance: { url: 'http://127.0.0.1:1', drop: folder },
      config: { dataFolder: path.join(folder, 'gone'), server: { base_url: 'http://a', host: '127.0.0.1' } },
      log: { warn: (_: object, msg: string) => warnings.push(msg) },
    };
    adviseOnStart(serving as unknown as Serving, new Command());
    assert.deepEqual(warnings, ['cannot check whether a key is in use']);
  });
});
