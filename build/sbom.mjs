/**
 * The list of what is inside an executable, as a CycloneDX 1.6 document (https://cyclonedx.org/docs/1.6/json/).
 *
 * `npm sbom` describes what is installed: it knows neither what the bundler left out nor that Node and SQLite are
 * inside, and it numbers and dates each run anew. Here the bundler's account of its inputs is joined with
 * package-lock.json; the same commit gives the same document.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TARGETS } from './targets.mjs';

/** Entries of process.versions that are no libraries: interfaces, and the data of one of them. */
const NOT_LIBRARIES = new Set(['node', 'modules', 'napi', 'cldr', 'tz', 'unicode']);

/**
 * @param {object} made
 * @param {string} made.root the project's folder
 * @param {string} made.target one of TARGETS
 * @param {string[]} made.packages places in package-lock.json
 * @param {string} made.sha256 of the executable, in hex
 * @param {string} made.version of the program
 * @param {string} made.commit
 * @param {string} made.sqlite version
 */
export function bomOf({ root, target, packages, sha256, version, commit, sqlite }) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const program = {
    type: 'application',
    'bom-ref': 'wirewatch',
    name: 'wirewatch',
    version,
    licenses: [{ license: { id: lock[''].license } }],
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    properties: [
      { name: 'wirewatch:commit', value: commit },
      { name: 'wirewatch:platform', value: target },
    ],
  };
  const npm = packages.map((place) => npmComponent(place, lock[place]));
  const refOf = new Map(packages.map((place, index) => [place, npm[index]['bom-ref']]));
  const node = nodeComponent(lock[`node_modules/${TARGETS[target].package}`], target);
  const ownSqlite = sqliteComponent(sqlite);
  const date = commitDate(root);
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: serialNumber(sha256),
    version: 1,
    metadata: { ...(date === undefined ? {} : { timestamp: date }), component: program },
    components: [...npm, ownSqlite, node],
    dependencies: [
      {
        ref: 'wirewatch',
        dependsOn: [...dependenciesOf('', lock, refOf), node['bom-ref']],
      },
      ...packages.map((place) => ({
        ref: refOf.get(place),
        dependsOn: [
          ...dependenciesOf(place, lock, refOf),
          ...(place === 'node_modules/better-sqlite3' ? [ownSqlite['bom-ref']] : []),
        ],
      })),
      { ref: ownSqlite['bom-ref'], dependsOn: [] },
      { ref: node['bom-ref'], dependsOn: [] },
    ],
  };
}

function npmComponent(place, { version, license, integrity }) {
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    licenses: [/\s/.test(license) ? { expression: license } : { license: { id: license } }],
    purl,
    hashes: hashes(integrity),
  };
}

function sqliteComponent(version) {
  return {
    type: 'library',
    'bom-ref': `pkg:generic/sqlite@${version}`,
    name: 'sqlite',
    version,
    description: "compiled into better-sqlite3's addon",
    licenses: [{ license: { id: 'blessing' } }],
    cpe: `cpe:2.3:a:sqlite:sqlite:${version}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/sqlite@${version}`,
  };
}

function nodeComponent({ version, integrity }, target) {
  const libraries = Object.entries(process.versions).filter(
    ([name, itsVersion]) => !NOT_LIBRARIES.has(name) && itsVersion,
  );
  return {
    type: 'platform',
    'bom-ref': `pkg:generic/node@${version}`,
    name: 'node',
    version,
    description: `Node.js, from the npm package ${TARGETS[target].package}`,
    licenses: [{ license: { id: 'MIT' } }],
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/node@${version}`,
    hashes: hashes(integrity),
    components: libraries.map(([name, itsVersion]) => ({
      type: 'library',
      'bom-ref': `pkg:generic/node@${version}#${name}`,
      name,
      version: itsVersion,
    })),
  };
}

/** The packages inside that one asks for, found as Node finds them: in its own folder, then in those around it. */
function dependenciesOf(place, lock, refOf) {
  const { dependencies = {}, optionalDependencies = {} } = lock[place];
  const found = Object.keys({ ...dependencies, ...optionalDependencies }).map((name) => {
    for (let folder = place; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
      const candidate = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
      if (lock[candidate] !== undefined || folder === '') return refOf.get(candidate);
    }
  });
  return found.filter((ref) => ref !== undefined).sort();
}

/** The package's hash as package-lock.json has it. */
function hashes(integrity) {
  const [algorithm, base64] = integrity.split('-');
  const content = Buffer.from(base64, 'base64').toString('hex');
  return [{ alg: algorithm.replace('sha', 'SHA-'), content }];
}

/** A number of its own for each executable, and the same one for the same bytes (a UUID of version 8, RFC 9562). */
function serialNumber(sha256) {
  const hex = createHash('sha256').update(`wirewatch sbom ${sha256}`).digest('hex');
  const variant = ((Number.parseInt(hex[16], 16) & 3) | 8).toString(16);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, variant + hex.slice(17, 20)];
  return `urn:uuid:${parts.join('-')}-${hex.slice(20, 32)}`;
}

/** When the commit was made; undefined without git. */
function commitDate(root) {
  try {
    const options = { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
    return execFileSync('git', ['show', '-s', '--format=%cI'], options).trim();
  } catch {
    return undefined;
  }
}
