/** The OpenAPI document: it is valid and matches the program, and the checks based on it can fail. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ENDPOINTS } from '../../src/http/endpoints/all.ts';
import * as limits from '../../src/limits/api-limits.ts';
import { openApiDocument } from '../../src/openapi/document.ts';
import { OPERATIONS } from '../../src/openapi/operations.ts';
import { SCHEMAS } from '../../src/openapi/schemas.ts';
import { adminDocument } from '../../src/operations/openapi.ts';
import { PROBLEMS } from '../../src/problem-titles.ts';
import { checkBody, membersOf } from '../support/checked-fetch.ts';
import { inFolder } from '../support/program.ts';

const root = path.join(import.meta.dirname, '..', '..');

/** A value in the document, by its path. */
const at = (...names: string[]): Record<string, unknown> =>
  names.reduce((value, name) => membersOf(value[name]), openApiDocument());

test('Redocly finds no error and no warning in either document', async () => {
  await inFolder(async (folder) => {
    for (const document of [openApiDocument(), adminDocument()]) lint(folder, document);
  });
});

function lint(folder: string, document: object): void {
  writeFileSync(path.join(folder, 'openapi.json'), JSON.stringify(document));
  const cli = path.join(root, 'node_modules', '@redocly', 'cli', 'bin', 'cli.js');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [cli, 'lint', 'openapi.json', '--extends', 'recommended', '--format', 'json'],
    {
      cwd: folder,
      encoding: 'utf8',
      timeout: 60_000,
      env: { PATH: process.env.PATH, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  const { totals, problems } = JSON.parse(stdout);
  assert.deepEqual([totals.errors, totals.warnings, totals.ignored], [0, 0, 0], JSON.stringify(problems));
  assert.equal(status, 0, stderr);
}

test('wirewatch openapi prints it, with --json and without', () => {
  for (const [args, document] of [
    [['openapi'], openApiDocument()],
    [['openapi', '--json'], openApiDocument()],
    [['openapi', '--admin'], adminDocument()],
  ] as const) {
    const main = path.join(root, 'dist', 'main.cjs');
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
    assert.deepEqual(JSON.parse(stdout), JSON.parse(JSON.stringify(document)));
  }
});

test("the document has exactly the program's endpoints", () => {
  const files = readdirSync(path.join(root, 'src', 'http', 'endpoints')).filter((name) => name !== 'all.ts');
  assert.equal(ENDPOINTS.length, files.length);
});

test('schemas have names for generated types: none numbered', () => {
  const names = Object.keys(at('components', 'schemas'));
  for (const name of names) assert.match(name, /^[A-Z][A-Za-z]+$/);
  for (const name of ['Band', 'TextSource', 'ImageStrength', 'TextArticle', 'Publisher'])
    assert.ok(names.includes(name), name);
});

test('a list parameter accepts an array and commas; the limits of the API are in the document', () => {
  const { parameters } = at('paths', '/v1/detections/changes', 'get');
  assert.ok(Array.isArray(parameters));
  const printed = (name: string) => membersOf(parameters.find((one) => one.name === name));
  for (const [name, countMax] of [
    ['subscription_id', limits.SUBSCRIPTIONS_MAX],
    ['publisher_id', limits.PUBLISHERS_MAX],
    ['domain', limits.DOMAINS_MAX],
    ['band', undefined],
  ] as const) {
    const { schema, example, style, explode } = printed(name);
    const { anyOf } = membersOf(schema);
    assert.ok(Array.isArray(anyOf) && Array.isArray(example));
    assert.deepEqual([anyOf[0].type, anyOf[1].type, style, explode], ['array', 'string', 'form', true]);
    assert.equal(anyOf[0].maxItems, countMax);
    assert.match(example.join(','), new RegExp(anyOf[1].pattern));
    assert.doesNotMatch(`${example},`, new RegExp(anyOf[1].pattern), 'an empty item is 400');
  }
  const { minimum, maximum, default: usual } = membersOf(printed('limit').schema);
  assert.deepEqual([minimum, maximum, usual], [1, limits.PAGE_ROWS_MAX, limits.PAGE_ROWS_DEFAULT]);
});

test('the first server URL works, and every endpoint can answer 431', () => {
  const { servers } = openApiDocument();
  assert.ok(Array.isArray(servers));
  assert.deepEqual(servers[0].url, 'http://127.0.0.1:8080');
  for (const { operationId, responses } of OPERATIONS) assert.ok(responses[431], operationId);
});

test('its table of error codes has every code, its status, title and what to do', () => {
  const text = String(at('info').description);
  for (const [code, { status, title }] of Object.entries(PROBLEMS))
    assert.match(text, new RegExp(`^\\| \`${code}\` \\| ${status} \\| ${title} \\| \\S[^|]+ \\|$`, 'm'));
  assert.match(text, /last path segment of `type` is the error code: test that/);
});

test('every example matches its body exactly', () => {
  let seen = 0;
  for (const { operationId, responses } of OPERATIONS)
    for (const [status, { content = {} }] of Object.entries(responses))
      for (const [type, { schema, examples = {} }] of Object.entries(content)) {
        if (!type.includes('json')) continue;
        for (const [name, { value }] of Object.entries(examples)) {
          checkBody(`${operationId} ${status} ${name}`, schema, value);
          seen += 1;
        }
      }
  assert.ok(seen > 40);
});

test('no printed object is closed: a later version may add members', () => {
  assert.doesNotMatch(JSON.stringify(openApiDocument()), /additionalProperties|"\$id"/);
  const token = { access_token: 'x', token_type: 'Bearer', expires_in: 3600, scope: '' };
  assert.throws(() => checkBody('token', SCHEMAS.Token, { ...token, refresh_token: 'y' }));
});
