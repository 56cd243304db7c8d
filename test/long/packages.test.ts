/**
 * The packages of `npm run build:packages`, installed and removed on a copy of this system: an overlay, which only root
 * can mount.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { without } from '../support/installed.ts';
import { inFolder } from '../support/program.ts';

const root = join(import.meta.dirname, '..', '..');
const dist = join(root, 'dist');
const skip =
  (process.platform !== 'linux' && 'packages are for Linux') ||
  (!existsSync(join(dist, 'wirewatch')) && 'dist/wirewatch is missing: npm run build');

const KINDS = [
  { form: 'deb', tool: 'dpkg-deb', install: 'dpkg --install', remove: 'dpkg --remove wirewatch' },
  // The libraries of this system are not in the database of rpm.
  { form: 'rpm', tool: 'rpmbuild', install: 'rpm --install --nodeps', remove: 'rpm --erase wirewatch' },
] as const;

/** In a mount namespace of its own, which goes with it: $1 an empty folder, $2 the package. */
const onCopy = (install: string, remove: string) => `
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
mount -t proc proc "$1/root/proc"
cp "$2" "$1/root/package"
chroot "$1/root" sh -e -c '
  ${install} /package >&2
  wirewatch --version
  id -un wirewatch
  echo "# mine" >> /etc/wirewatch/wirewatch.toml
  WIREWATCH_CONFIG=/etc/wirewatch/wirewatch.toml wirewatch check --data /var/lib/wirewatch >&2
  grep ^ExecStart= /usr/lib/systemd/system/wirewatch.service
  mkdir /var/lib/wirewatch
  ${remove} >&2
  ls -d /usr/bin/wirewatch /usr/lib/systemd/system/wirewatch.service /var/lib/wirewatch 2>/dev/null || true
  id -un wirewatch
'`;

before(() => {
  if (skip !== false || KINDS.every(({ tool }) => without(tool))) return;
  const made = spawnSync(process.execPath, [join(root, 'build', 'packages.mjs')], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
});

for (const { form, tool, install, remove } of KINDS)
  test(`the .${form} installs program, unit, configuration and user; removed, it leaves the data`, {
    skip: skip || without(tool),
  }, (context) => {
    const name = readdirSync(dist).find((one) => one.endsWith(`.${form}`)) ?? '';
    return inFolder(async (folder) => {
      const unshared = (...command: string[]) =>
        spawnSync('unshare', ['--mount', ...command], { encoding: 'utf8' });
      if (unshared('mount', '-t', 'tmpfs', 'tmpfs', folder).status !== 0)
        return context.skip('only root can mount a copy of this system');
      const script = onCopy(install, remove);
      const { status, stdout, stderr } = unshared('sh', '-c', script, 'sh', folder, join(dist, name));
      assert.equal(status, 0, stderr);
      const [version = '', user, started = '', ...left] = stdout.trim().split('\n');
      assert.match(version, /^wirewatch \d+\.\d+\.\d+/);
      assert.equal(user, 'wirewatch');
      assert.match(started, /^ExecStart=\/usr\/bin\/wirewatch serve --data \/var\/lib\/wirewatch /);
      assert.deepEqual(left, ['/var/lib/wirewatch', 'wirewatch']);
    });
  });
