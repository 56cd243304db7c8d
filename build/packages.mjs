/**
 * Makes dist/wirewatch_VERSION_ARCH.deb and dist/wirewatch-VERSION-1.ARCH.rpm of dist/wirewatch, each where its tool is
 * installed (dpkg-deb, rpmbuild): the program, the configuration with every setting, the systemd unit and the license.
 * Installing one creates the user of the service and starts nothing; removing it keeps the data and the user.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { root, version } from './bundle.mjs';

const dist = join(root, 'dist');
const staging = join(dist, 'packages.staging');
const files = join(staging, 'files');
const { description, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const ARCHITECTURES = { x64: ['amd64', 'x86_64'], arm64: ['arm64', 'aarch64'] };
const [debArchitecture, rpmArchitecture] = ARCHITECTURES[process.arch] ?? [];
const CONFIG = '/etc/wirewatch/wirewatch.toml';
const SUMMARY = description.split(':')[0];
const DESCRIPTION = `${description} Its manual is inside: wirewatch manual.`;

const INSTALLED = `id -u wirewatch >/dev/null 2>&1 || useradd --system --user-group --home-dir /var/lib/wirewatch --no-create-home --shell /usr/sbin/nologin wirewatch
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart wirewatch
fi
`;
/** "remove" is dpkg's word, 0 that of rpm: an update comes here, too. */
const REMOVING = `if [ "$1" = remove ] || [ "$1" = 0 ]; then
  [ ! -d /run/systemd/system ] || systemctl disable --now wirewatch
fi
`;

function put(path, text, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
}

function stage() {
  const program = join(dist, 'wirewatch');
  if (!existsSync(program)) refuse('dist/wirewatch is missing. Make it first: npm run build');
  const read = (...path) => readFileSync(join(root, ...path), 'utf8');
  rmSync(staging, { recursive: true, force: true });
  put(join(files, CONFIG), read('config', 'wirewatch.toml'));
  const unit = read('config', 'wirewatch.service').replace('/usr/local/bin/', '/usr/bin/');
  put(join(files, 'usr/lib/systemd/system/wirewatch.service'), unit);
  put(join(files, 'usr/share/doc/wirewatch/copyright'), read('LICENSE'));
  mkdirSync(join(files, 'usr/bin'), { recursive: true });
  cpSync(program, join(files, 'usr/bin/wirewatch'), { mode: 0 });
  chmodSync(join(files, 'usr/bin/wirewatch'), 0o755);
}

function makeDeb() {
  const control = [
    'Package: wirewatch',
    `Version: ${version()}`,
    `Architecture: ${debArchitecture}`,
    'Maintainer: Wirewatch <wirewatch@localhost>',
    'Depends: libc6 (>= 2.34), libstdc++6 (>= 11), passwd',
    'Section: net',
    'Priority: optional',
    `Description: ${SUMMARY}`,
    ` ${DESCRIPTION}`,
  ];
  const deb = join(dist, `wirewatch_${version()}_${debArchitecture}.deb`);
  const tree = join(staging, 'deb');
  cpSync(files, tree, { recursive: true });
  put(join(tree, 'DEBIAN/control'), `${control.join('\n')}\n`);
  put(join(tree, 'DEBIAN/conffiles'), `${CONFIG}\n`);
  put(join(tree, 'DEBIAN/postinst'), `#!/bin/sh\nset -e\n${INSTALLED}`, 0o755);
  put(join(tree, 'DEBIAN/prerm'), `#!/bin/sh\nset -e\n${REMOVING}`, 0o755);
  // Debian 11 and its derivatives cannot unpack dpkg's own default of today.
  run('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z6', '--build', tree, deb]);
  return deb;
}

function makeRpm() {
  // The program ends in what was appended to it: stripping it, or looking into it for libraries, goes wrong.
  const spec = `%global __os_install_post %{nil}
%global debug_package %{nil}
%global _binary_payload w6.gzdio
Name: wirewatch
Version: ${version()}
Release: 1
Summary: ${SUMMARY}
License: ${license}
AutoReqProv: no
Requires: glibc >= 2.34, libstdc++ >= 11, shadow-utils
%description
${DESCRIPTION}
%install
cp -a ${files}/. %{buildroot}
%files
%attr(755, root, root) /usr/bin/wirewatch
%attr(644, root, root) /usr/lib/systemd/system/wirewatch.service
%attr(644, root, root) %config(noreplace) ${CONFIG}
%attr(644, root, root) /usr/share/doc/wirewatch/copyright
%post
${INSTALLED}%preun
${REMOVING}`;
  const top = join(staging, 'rpm');
  put(join(top, 'wirewatch.spec'), spec);
  const rpm = `wirewatch-${version()}-1.${rpmArchitecture}.rpm`;
  const names = [
    `_topdir ${top}`,
    `_rpmdir ${top}`,
    '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm',
  ];
  const defined = names.flatMap((name) => ['--define', name]);
  run('rpmbuild', ['-bb', '--quiet', '--target', rpmArchitecture, ...defined, join(top, 'wirewatch.spec')]);
  cpSync(join(top, rpm), join(dist, rpm));
  return join(dist, rpm);
}

function run(command, args) {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) refuse(`${command} failed: ${error?.message ?? stderr}`);
}

function refuse(reason) {
  console.error(`wirewatch build: ${reason}`);
  process.exit(1);
}

if (debArchitecture === undefined || process.platform !== 'linux')
  refuse(`there are no packages for ${process.platform}-${process.arch}: expected linux-x64 or linux-arm64`);
const KINDS = [
  {
    tool: 'dpkg-deb',
    make: makeDeb,
    advice: 'On Debian and its derivatives it is there; elsewhere, install dpkg.',
  },
  { tool: 'rpmbuild', make: makeRpm, advice: 'Install rpm-build, on Debian rpm.' },
];
const possible = KINDS.filter(({ tool }) => spawnSync(tool, ['--version']).status === 0);
if (possible.length === 0) refuse('neither dpkg-deb nor rpmbuild is installed');
stage();
for (const { make } of possible) {
  const made = make();
  console.error(`wirewatch build: wrote ${made} (${Math.round(statSync(made).size / 1e6)} MB)`);
}
for (const { tool, advice } of KINDS.filter((kind) => !possible.includes(kind)))
  console.error(`wirewatch build: ${tool} is missing, so its package was not made. ${advice}`);
rmSync(staging, { recursive: true });
