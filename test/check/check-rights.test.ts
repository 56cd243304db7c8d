/** `wirewatch check`: configured accounts and permissions. */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { asOther, OTHER_ID, withoutAnotherUser } from '../support/another-user.ts';
import { check, checked, snapshot, startAndStop, withAccount } from '../support/check.ts';
import { runBeside, succeedBeside } from '../support/command.ts';
import { ACCOUNT, KEY, SUBSCRIPTION } from '../support/preseed.ts';
import { inFolder, runProgram } from '../support/program.ts';

const isRoot = process.getuid?.() === 0;

const isExecutable = process.env.WIREWATCH_PROGRAM !== undefined;
const skip = isRoot && (isExecutable ? 'an executable is not run as another user' : withoutAnotherUser());

const asAnother = (args: readonly string[]) => runProgram(args, {}, isRoot ? { through: asOther } : {});

/** Gives a folder and everything in it to the user of {@link asAnother}. */
function giveAway(folder: string): void {
  if (!isRoot) return;
  chownSync(folder, OTHER_ID, OTHER_ID);
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    chownSync(join(folder, name), OTHER_ID, OTHER_ID);
}

const FINE = {
  check: 'configured accounts',
  status: 'ok',
  detail: 'all exist, or the next start creates them',
  what_to_do: null,
};

test('configured accounts that a start would refuse are found; the check changes nothing', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const file = join(folder, 'wirewatch.toml');
    const preseedFinding = async (text: string) => {
      writeFileSync(file, `[server]\nport = 0\n${text}`);
      const { code, of } = await check(data, '--config', file);
      return { code, ...of('configured accounts') };
    };
    const right = `${ACCOUNT}${SUBSCRIPTION}${KEY}`;
    assert.deepEqual(await preseedFinding(right), { code: 0, ...FINE });
    const wrong = await preseedFinding(`${ACCOUNT}${SUBSCRIPTION}${KEY.replace('"acme"', '"other"')}`);
    assert.deepEqual([wrong.code, wrong.status], [1, 'bad']);
    assert.match(wrong.detail, /keys\[0\]\.account: account other does not exist/);
    const run = await runBeside(['serve', '--data', data, '--config', file]);
    assert.equal(run.status, 78);
    assert.ok(run.stderr.includes(wrong.detail), 'the start must report the same');

    await succeedBeside(['account', 'add', 'acme', '--name', 'Acme News', '--data', data]);
    const before = snapshot(data);
    assert.equal((await preseedFinding(right)).detail, FINE.detail);
    const lacking = await preseedFinding(`${ACCOUNT}${KEY}`);
    assert.equal(lacking.status, 'bad', 'subscription 7001 does not exist');
    const differing = await preseedFinding('[[accounts]]\nid = "acme"\nname = "Another"\n');
    assert.equal(differing.status, 'warn');
    assert.match(differing.detail, /account acme: name/);
    assert.equal((await preseedFinding(ACCOUNT)).detail, FINE.detail);
    assert.deepEqual(snapshot(data), before);
  }));

describe('without permission', { skip }, () => {
  test('advises to fix the owner, never to restore a backup', () =>
    withAccount(async (data, folder) => {
      await startAndStop(data);
      for (const name of ['access.db', 'detections.db', 'secret', 'log']) {
        giveAway(folder);
        if (name !== 'log') writeFileSync(join(data, name), '', { flag: 'a' });
        chmodSync(join(data, name), 0o000);
        const { code, of } = await checked(asAnother(['check', '--json', '--data', data, '--port', '0']));
        assert.equal(code, 1);
        const found = of('data folder');
        assert.equal(found.status, 'bad', name);
        assert.ok(found.detail.includes(`permission denied (${join(data, name)})`), found.detail);
        assert.match(found.what_to_do ?? '', /chown/);
        assert.doesNotMatch(found.what_to_do ?? '', /backup/i);
        chmodSync(join(data, name), name === 'log' ? 0o700 : 0o600);
      }
    }));

  test('root finds nothing bad in a sound installation of another user', { skip: !isRoot }, () =>
    inFolder(async (folder) => {
      giveAway(folder);
      await using running = asAnother(['serve', '--data', join(folder, 'data'), '--port', '0']);
      await running.url();
      await running.logged('the first scan', ({ msg }) => msg === 'checked for missing windows');
      const { code, findings } = await check(join(folder, 'data'), '--port', '0');
      assert.equal(code, 0, JSON.stringify(findings));
      assert.ok(!findings.some(({ what_to_do }) => what_to_do?.includes('mv ')), JSON.stringify(findings));
    }),
  );

  test('a drop folder that cannot be read is bad, as its alert will be', () =>
    inFolder(async (folder) => {
      const drop = join(folder, 'drop');
      mkdirSync(drop);
      giveAway(folder);
      chmodSync(drop, 0o300);
      const args = ['--data', join(folder, 'data'), '--drop', drop, '--port', '0'];
      const { of } = await checked(asAnother(['check', '--json', ...args]));
      assert.equal(of('drop folder').status, 'bad');
      const running = asAnother(['serve', ...args]);
      await running.logged('the alert', ({ alert }) => alert === 'drop folder not readable');
      await running.stop();
      chmodSync(drop, 0o700);
    }));

  test('an inaccessible data folder is one finding among others', () =>
    withAccount(async (data, folder) => {
      giveAway(folder);
      const file = join(folder, 'wirewatch.toml');
      writeFileSync(file, '[server]\nport = 0\n');
      for (const mode of [0o600, 0o000]) {
        chmodSync(data, mode);
        const run = asAnother(['check', '--json', '--data', data, '--config', file]);
        const { code, of, findings } = await checked(run);
        assert.equal(code, 1);
        assert.equal(of('data folder').status, 'bad');
        assert.ok(!findings.some(({ check }) => check === 'appliance'), 'whether it runs is not known');
        assert.equal(of('TLS').status, 'ok', 'other checks must still run');
      }
      chmodSync(data, 0o700);
    }));
});
