/** A client that knows only the service's address, a key and the OpenAPI document, against the running program. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { inFolder } from '../support/program.ts';
import { compileTypedClient, writeTypedClient } from '../support/typed-client.ts';

const PHOTO = Buffer.from('not really a photo');

const since = new Date(Date.now() - 1000).toISOString();

const appliance = await sharedAppliance();
const url = appliance.serving().url;
const [, , id = '', secret = ''] = appliance.key.split('_');
const textRow = newRow();
const image = newRow({ source_internal_id: 601 });
const textId = idOf(textRow);
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([textRow]));
await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([image]));
mkdirSync(path.join(appliance.data, 'photos'), { recursive: true });
writeFileSync(path.join(appliance.data, 'photos', '601.jpg'), PHOTO);

/** Calls every endpoint, guided only by the types: a wrong type would not compile. */
const TYPED_CLIENT = `
import createClient from 'openapi-fetch';
import type { components, paths } from './api.ts';

const { BASE_URL = '', KEY = '', CLIENT_ID = '', CLIENT_SECRET = '', SINCE = '' } = process.env;
const called: string[] = [];
const service = createClient<paths>({ baseUrl: BASE_URL, headers: { Authorization: \`Bearer \${KEY}\` } });

function must<Data>(name: string, { data, error, response }: { data?: Data; error?: unknown; response: Response }): Data {
  if (data === undefined) throw new Error(\`\${name}: \${response.status} \${JSON.stringify(error)}\`);
  called.push(name);
  return data;
}

type Detection = components['schemas']['Detection'];
function headline(detection: Detection): string {
  const publisher: string | null | undefined = detection.article.publisher?.name;
  if (detection.content_type === 'text') return \`\${detection.strength.matched_sentences} \${publisher}\`;
  // @ts-expect-error a photo has no sentences
  detection.strength.matched_sentences;
  return \`\${detection.source.image_url} \${publisher}\`;
}

const changes = must('changes', await service.GET('/v1/detections/changes', {
  params: { query: { since: SINCE, limit: 10, subscription_id: [7001, 7002], band: ['medium', 'high'], print: false } },
}));
const [first] = changes.data;
if (first?.event !== 'created') throw new Error('no first change');
must('changes again', await service.GET('/v1/detections/changes', { params: { query: { cursor: changes.next_cursor } } }));

const from = first.first_detected_at.slice(0, 10);
const period = must('period', await service.GET('/v1/detections', {
  params: { query: { from, to: from, time_zone: 'UTC', sort: 'first_detected_at', domain: ['example.com'], limit: 5 } },
}));
const end: string = period.to;
// @ts-expect-error from and to are required
service.GET.bind(null, '/v1/detections', { params: { query: { from } } })();

const one = must('detection', await service.GET('/v1/detections/{id}', { params: { path: { id: first.id } } }));
const me = must('me', await service.GET('/v1/me'));
const scopes: ('detections:read' | 'reports:read' | 'exports:create')[] = me.key.scopes;
const gaps: string[] = (me.data_gaps.text ?? []).map((gap) => \`\${gap.window_start} \${gap.status}\`);
const schema = must('schema', await service.GET('/v1/schema/detection', { params: { query: { schema_version: 'v1' } } }));
const types: ('string' | 'integer' | 'number' | 'boolean' | 'timestamp')[] = schema.fields.map((field) => field.type);
const token = must('token', await service.POST('/oauth/token', {
  body: { grant_type: 'client_credentials', client_id: CLIENT_ID, client_secret: CLIENT_SECRET },
  headers: { Authorization: null, 'Content-Type': 'application/x-www-form-urlencoded' },
}));
const lifetime: number = token.expires_in;
const health = await service.GET('/v1/health');
const said = health.data ?? health.error;
const status: 'ok' | 'degraded' | undefined = said !== undefined && 'alerts' in said ? said.status : undefined;
if (status !== undefined) called.push('health');
for (const [name, { response }] of [
  ['head schema', await service.HEAD('/v1/schema/detection')],
  ['head health', await service.HEAD('/v1/health')],
] as const) if (response.status === 200 || response.status === 503) called.push(name);

const image = changes.data.find((detection) => detection.content_type === 'image');
if (image?.content_type !== 'image') throw new Error('no photo');
const address = new URL(image.source.image_url);
const photo = await service.GET('/photos/{internal_id}', {
  params: { path: { internal_id: image.source.internal_id }, query: { signature: address.searchParams.get('signature') ?? '' } },
  parseAs: 'arrayBuffer',
});
must('photo', photo);

const { error } = await service.GET('/v1/detections/{id}', { params: { path: { id: 't.1.1.1' } } });
const detail: string | undefined = error?.detail;
console.log(JSON.stringify({ called, end, status, lifetime, scopes, gaps, types: types.length, detail, headline: headline(one), id: one.id }));
`;

test('a client typed from the document compiles, and calls every endpoint', async () => {
  await inFolder(async (folder) => {
    writeTypedClient(folder, TYPED_CLIENT);
    await compileTypedClient(folder, appliance.cli(['openapi', '--json']).stdout);

    const env = { BASE_URL: url, KEY: appliance.key, CLIENT_ID: id, CLIENT_SECRET: secret };
    const options = { cwd: folder, env: { ...env, SINCE: since } };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['client.ts'], options);
    assert.equal(stderr, '');
    const result = JSON.parse(stdout);
    const expected = 'changes, changes again, period, detection, me, schema, token, health, head schema';
    assert.deepEqual(result.called, [...expected.split(', '), 'head health', 'photo']);
    assert.equal(result.detail, 'No detection with this id is available to this key.');
    assert.equal(result.id, textId);
  });
});
