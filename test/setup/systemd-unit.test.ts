/** The unit that `wirewatch setup` writes; systemd-analyze checks it, too. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { unitText } from '../../src/setup/unit.ts';
import { without } from '../support/installed.ts';
import { testFolder } from '../support/test-folder.ts';

const TERMS = {
  program: ['/usr/local/bin/wirewatch'],
  data: '/var/lib/wirewatch',
  config: '/etc/wirewatch/wirewatch.toml',
  user: 'wirewatch',
  needed: [],
  optional: [],
  readable: [],
  ports: [8080, 0],
};

test('the unit of the usual places is the sample', () => {
  const sample = path.join(import.meta.dirname, '../../config/wirewatch.service');
  assert.equal(unitText(TERMS), readFileSync(sample, 'utf8'));
});

test('a port below 1024 adds the one capability it needs', () => {
  const unit = unitText({ ...TERMS, ports: [443] });
  assert.match(unit, /^AmbientCapabilities=CAP_NET_BIND_SERVICE$/m);
  assert.match(unit, /^CapabilityBoundingSet=CAP_NET_BIND_SERVICE$/m);
  assert.match(unit, /^PrivateUsers=no$/m);
});

test('a data folder with a space in its name, and a percent sign', () => {
  const unit = unitText({ ...TERMS, data: '/srv/wire watch/100%' });
  assert.match(unit, /^ExecStart=.* serve --data "\/srv\/wire watch\/100%%" /m);
});

test('a home is closed, but for the paths that the configuration names in it', () => {
  const home = (readable: readonly string[]) =>
    /ProtectHome=(.*)/.exec(unitText({ ...TERMS, readable }))?.[1];
  assert.deepEqual([home([]), home(['/home/1/photos'])], ['yes', 'read-only']);
});

const folder = testFolder();
const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

describe('systemd-analyze', { skip: without('systemd-analyze') }, () => {
  const terms = { ...TERMS, program: ['/bin/sh'], user: 'root' };

  function written(more: Partial<Parameters<typeof unitText>[0]>): string {
    const file = path.join(folder, 'wirewatch.service');
    writeFileSync(file, unitText({ ...terms, ...more }));
    return file;
  }

  test('finds nothing wrong with any unit', () => {
    for (const more of [
      {},
      { ports: [443] },
      { data: '/srv/the agency\'s "100 %" $HOME', needed: ['/home/1/drop'], optional: ['/srv/a b'] },
    ]) {
      const found = analyze('verify', '--man=no', '--recursive-errors=no', written(more));
      assert.deepEqual([found.status, found.stdout, found.stderr], [0, '', '']);
    }
  });

  test('rates the exposure below 1.5 of 10', () => {
    for (const more of [{}, { needed: ['/srv/exports'], optional: ['/srv/copy'] }]) {
      const unit = written({ user: 'wirewatch', ...more });
      const options = ['--offline=true', '--threshold=15', '--no-pager'];
      const { status, stdout } = analyze('security', ...options, unit);
      assert.match(stdout, /Overall exposure level/);
      assert.equal(status, 0, stdout.slice(-200));
    }
  });
});
