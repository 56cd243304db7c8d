/**
 * Clients generated from the OpenAPI document: they compile under `strict` without exceptions, their types have the
 * names of the document, and they read from the running program. Of openapi-typescript: test/openapi/clients.test.ts.
 *
 * The generators have their own lockfile (generators/), since only this test needs them.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { testFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const root = path.join(import.meta.dirname, '..', '..');
const folder = testFolder();
const since = new Date(Date.now() - 1000).toISOString();
const row = newRow({ article_publisher_id: 19, article_publisher_name: 'Example News' });

const appliance = await sharedAppliance();

for (const name of ['package.json', 'package-lock.json'])
  copyFileSync(path.join(import.meta.dirname, 'generators', name), path.join(folder, name));
copyFileSync(path.join(root, '.npmrc'), path.join(folder, '.npmrc'));
// Without the packages' own install scripts. It needs a registry or a filled cache.
const shell = process.platform === 'win32';
execFileSync('npm', ['ci', '--ignore-scripts', '--prefer-offline'], { cwd: folder, stdio: 'pipe', shell });
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([row]));
writeFileSync(path.join(folder, 'openapi.json'), appliance.cli(['openapi']).stdout);

/** Runs a script of an installed package, with the project's Node. */
function run(script: string, ...args: string[]): void {
  const env = { PATH: process.env.PATH };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: folder, env });
  assert.equal(status, 0, `${script} ${args.join(' ')}: ${stdout}${stderr}`);
}

const installed = (...names: string[]) => path.join(folder, 'node_modules', ...names);

/** Compiles the client, the code that uses it, and its libraries' declarations. */
function compile(entry: string): void {
  const strict = ['--strict', '--noUncheckedIndexedAccess', '--skipLibCheck', 'false', '--noEmit'];
  const modules = ['--module', 'esnext', '--moduleResolution', 'bundler'];
  const libraries = ['--target', 'es2024', '--lib', 'es2024,dom,dom.iterable', '--typeRoots', 'absent'];
  run(installed('typescript', 'bin', 'tsc'), ...strict, ...modules, ...libraries, entry);
}

/** Writes code that uses a client, compiles it, and runs it. */
async function use(entry: string, source: string): Promise<void> {
  writeFileSync(path.join(folder, entry), `${source}${PRINT}`);
  compile(entry);
  const outfile = path.join(folder, `${entry}.mjs`);
  const bundled = { bundle: true, platform: 'node', format: 'esm', outfile } as const;
  buildSync({ ...bundled, entryPoints: [path.join(folder, entry)], logLevel: 'silent' });
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [outfile]);
  assert.equal(stderr, '');
  assert.deepEqual(JSON.parse(stdout), EXPECTED);
}

/**
 * The file must have these types, and none that the generator had to number (`Band2`), except for statuses at the end.
 */
function assertNames(file: string): void {
  const types = readFileSync(path.join(folder, file), 'utf8').matchAll(/^export (?:type|interface) (\w+)/gm);
  const declared = [...types].map(([, name = '']) => name);
  const numbered = declared.filter((name) => /\d/.test(name) && !/Response[1-5]\d\d(Image\w+)?$/.test(name));
  assert.deepEqual(numbered, []);
  for (const name of NAMES) assert.ok(declared.includes(name), `${file} has no type ${name}`);
}

const NAMES = ['Band', 'Publisher', 'TextSource', 'ImageStrength', 'TextArticle', 'Change', 'Problem', 'Gap'];
const EXPECTED = { ids: [idOf(row)], publisher: 'Example News', band: 'medium', refused: 400 };

const PRINT = `
const [first] = changes.data;
if (first?.content_type !== 'text') throw new Error('no story');
const publisher: Publisher | null = first.article.publisher;
const band: Band = first.strength.band;
const sentences: number | null = first.strength.matched_sentences;
// @ts-expect-error only a photo has an address
first.source.image_url;
if (sentences !== null && sentences < 0) throw new Error('less than none');
console.log(JSON.stringify({ ids: changes.data.map(({ id }) => id), publisher: publisher?.name, band, refused }));
`;

const TYPES = 'Band, ChangesPage, Publisher';

test('@hey-api/openapi-ts', async () => {
  const args = words('-i openapi.json -o hey -c @hey-api/client-fetch');
  run(installed('@hey-api', 'openapi-ts', 'bin', 'run.js'), ...args);
  assertNames('hey/types.gen.ts');
  await use(
    'use-hey.ts',
    `
  import { listChanges, listDetections } from './hey';
  import { client } from './hey/client.gen';
  import type { ${TYPES} } from './hey';

  const defaultAddress: string | undefined = client.getConfig().baseUrl;
  if (defaultAddress !== 'http://127.0.0.1:8080') throw new Error(\`\${defaultAddress} cannot be called\`);
  client.setConfig({ baseUrl: ${JSON.stringify(appliance.serving().url)}, auth: ${JSON.stringify(appliance.key)} });
  const query = { since: ${JSON.stringify(since)}, subscription_id: [7001, 7002] };
  const answer = await listChanges({ query: { ...query, band: 'medium,high' }, throwOnError: true });
  const changes: ChangesPage = answer.data;
  const wrong = await listDetections({ query: { from: 'x', to: 'y' } });
  const refused: number | undefined = wrong.error?.status;
`,
  );
});

test('orval', async () => {
  mkdirSync(path.join(folder, 'orval'), { recursive: true });
  const output = { target: 'orval/api.ts', client: 'fetch', baseUrl: appliance.serving().url };
  const config = { api: { input: 'openapi.json', output } };
  writeFileSync(path.join(folder, 'orval.config.mjs'), `export default ${JSON.stringify(config)}`);
  run(installed('orval', 'dist', 'bin', 'orval.mjs'), '--config', 'orval.config.mjs');
  assertNames('orval/api.ts');
  await use(
    'use-orval.ts',
    `
  import { listChanges, listDetections } from './orval/api';
  import type { ${TYPES} } from './orval/api';

  const headers = { Authorization: ${JSON.stringify(`Bearer ${appliance.key}`)} };
  const query = { since: ${JSON.stringify(since)}, subscription_id: [7001, 7002] };
  const answer = await listChanges({ ...query, band: 'medium,high' }, { headers });
  if (answer.status !== 200) throw new Error(answer.data.detail);
  const changes: ChangesPage = answer.data;
  const wrong = await listDetections({ from: 'x', to: 'y' }, { headers });
  const refused: number | undefined = wrong.status === 400 ? wrong.data.status : undefined;
`,
  );
});
