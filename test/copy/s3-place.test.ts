/** An S3 service as the place of a copy: its own cases, besides those of all places. */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { openPlace, tryPlace } from '../../src/copy/open-place.ts';
import { Unreachable } from '../../src/copy/place.ts';
import { openS3Place } from '../../src/copy/s3-place.ts';
import { Refused } from '../../src/refused.ts';
import { testPlaces } from '../support/place-cases.ts';
import { BUCKET, CREDENTIALS, REGION, type S3Server, startS3Server } from '../support/s3-server.ts';
import { testFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const ONE = Buffer.from('one');
const TWO = Buffer.from('two');
const NAME = 'log/1.zst';

let server: S3Server;
beforeEach(async () => {
  server = await startS3Server();
});
afterEach(() => server.close());

function credentialsFile(text = `${CREDENTIALS.access}\n${CREDENTIALS.secret}\n`, mode = 0o600): string {
  const path = join(testFolder(), 'credentials');
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

function settings(changes = {}) {
  return { endpoint: server.endpoint, region: REGION, credentials: credentialsFile(), ...changes };
}

const open = (to = `s3://${BUCKET}/copies/a`, changes = {}, limitMs = 30_000) =>
  openS3Place(to, settings(changes), limitMs);
const openWith = (changes: object) => open(undefined, changes);

/** Work must fail with an error of this class and text, without any of the credentials. */
const failing =
  (type: typeof Unreachable | typeof Refused) =>
  (work: Promise<unknown>, pattern: RegExp, message?: string): Promise<void> => {
    const isRight = (thrown: unknown) => {
      assert.ok(thrown instanceof type, String(thrown));
      assert.match(thrown.message, pattern);
      const all = `${thrown.message} ${thrown.stack} ${JSON.stringify(thrown.cause)} ${String(thrown.cause)}`;
      assert.ok(!all.includes(CREDENTIALS.secret) && !all.includes(CREDENTIALS.access), all);
      return true;
    };
    return assert.rejects(work, isRight, message);
  };
const [unreachable, refused] = [failing(Unreachable), failing(Refused)];

testPlaces('S3', async () => ({ place: await open(), again: () => open() }));
testPlaces('S3 with pages of 7', async () => {
  server.pageMax = 7;
  return { place: await open(), again: () => open() };
});

test('objects lie below the prefix; others there are not listed', async () => {
  const place = await open();
  await place.create(NAME, ONE);
  for (const to of [`s3://${BUCKET}`, `s3://${BUCKET}/`]) await (await open(to)).create('x', ONE);
  assert.deepEqual([...server.objects.keys()], ['copies/a/log/1.zst', 'x']);
  for (const key of ['copies/a/log/OTHER', 'copies/a/log/', 'copies/ab', 'copies/a', 'z'])
    server.objects.set(key, ONE);
  assert.deepEqual(await place.list('', ''), [NAME]);
});

test('a service that ignores If-None-Match is found out', async () => {
  server.ignoresIfNoneMatch = true;
  await refused(tryPlace(await open()), /cannot keep a copy in s3:.*ignores If-None-Match/);
  assert.equal(server.objects.size, 0);
});

for (const fault of ['503', 'cut', '503 after', 'cut after', '409'] as const) {
  test(`${fault} on a create: this one created it, or another had`, async () => {
    const place = await open();
    server.faults.push(`PUT ${fault}`);
    assert.equal(await place.create(NAME, ONE), true);
    assert.deepEqual(await place.read(NAME), ONE);
    server.faults.push(`PUT ${fault}`);
    assert.equal(await place.create(NAME, TWO), false);
    assert.deepEqual(await place.read(NAME), ONE);
    assert.deepEqual(server.faults, []);
  });
}

for (const fault of ['503', 'cut'] as const) {
  test(`${fault} on a create, again and again: it is not known`, async () => {
    const place = await open();
    server.faults.push(...Array<`PUT ${typeof fault}`>(3).fill(`PUT ${fault}`));
    await unreachable(place.create(NAME, ONE), fault === '503' ? /503 \(SlowDown\)/ : /cannot reach/);
    const methods = server.requests.map((line) => line.slice(0, 3));
    assert.deepEqual(methods, ['PUT', 'PUT', 'PUT']);
    assert.equal(server.objects.size, 0);
  });
}

test('a create whose answer is lost, and the reading back too: it is not known', async () => {
  const place = await open();
  server.faults.push('PUT cut after', 'GET 503', 'GET 503', 'GET 503');
  await assert.rejects(place.create(NAME, ONE), Unreachable);
  assert.equal(await place.create(NAME, ONE), false);
  assert.deepEqual(await place.read(NAME), ONE);
});

test('another client creates the object between two tries of this one', async () => {
  const place = await open();
  server.faults.push('PUT 503', 'PUT other first');
  assert.equal(await place.create(NAME, ONE), false);
  assert.deepEqual(await place.read(NAME), Buffer.from('of another'));
});

test('a create that did nothing is not taken for done, though another has created the same', async () => {
  const place = await open();
  assert.equal(await place.create(NAME, ONE), true);
  server.faults.push('PUT 409');
  assert.equal(await place.create(NAME, ONE), false);
});

test('many requests at once for an object, which nobody gets', async () => {
  const place = await open();
  server.faults.push('PUT 409', 'PUT 409', 'PUT 409');
  await unreachable(place.create(NAME, ONE), /409 .*Other requests for this object are under way/);
});

test('a service that hangs: the time is limited, and an object that it stored is found', async () => {
  const place = await open(undefined, {}, 300);
  server.faults.push('PUT hang after');
  assert.equal(await place.create(NAME, ONE), true);
  server.faults.push('GET hang');
  assert.deepEqual(await place.read(NAME), ONE);
  server.faults.push('hang', 'hang', 'hang');
  await unreachable(place.list('', ''), /no answer in time\. Check that the S3 service runs/);
});

test('reads, lists and deletions are repeated twice', async () => {
  const place = await open();
  await place.create(NAME, ONE);
  server.faults.push('503', 'cut');
  assert.deepEqual(await place.read(NAME), ONE);
  server.faults.push('cut', '503');
  assert.deepEqual(await place.list('', ''), [NAME]);
  server.faults.push('503', '503', '503');
  await unreachable(place.read(NAME), /answered 503 \(SlowDown\)\. See the S3 service's own log/);
  server.faults.push('cut after', '503 after');
  await place.delete(NAME);
  assert.equal(await place.read(NAME), null);
});

test('what the service refuses is said with what to check, and is not repeated', async () => {
  await unreachable((await open('s3://none/a')).create(NAME, ONE), /404 \(NoSuchBucket\)\. Check the bucket/);
  await unreachable((await open('s3://none/a')).read(NAME), /NoSuchBucket/);
  const region = await open(undefined, { region: 'us-east-1' });
  await unreachable(region.list('', ''), /403 \(AuthorizationHeaderMalformed\)/);
  for (const text of [`${CREDENTIALS.access}\nwrong`, `wrong\n${CREDENTIALS.secret}`]) {
    const place = await open(undefined, { credentials: credentialsFile(text) });
    await unreachable(place.create(NAME, ONE), /403 \(\w+\)\. Check the credentials/);
    await unreachable(tryPlace(place), /Check the credentials/);
  }
  assert.equal(server.requests.length, 7);
});

test('nothing listens at the endpoint; its name is unknown', async () => {
  const { endpoint } = server;
  await server.close();
  await unreachable((await open(undefined, { endpoint })).read(NAME), /connection refused/);
  const unknown = 'http://s3.wirewatch.invalid';
  await unreachable((await open(undefined, { endpoint: unknown })).read(NAME), /resolve|EAI_AGAIN|ENOTFOUND/);
});

test('addresses that are none are refused', async () => {
  const wrong = words(
    's3:// s3:///a s3://b/ s3://bucket/a//b s3://bucket/../a s3://bucket/. s3://bucket/a&b',
  );
  for (const to of [...wrong, 's3://buc ket/a', 's3://bucket/a\nb'])
    await refused(openPlace(to, settings()), /is not the address of a bucket/, to);
  const user = `${CREDENTIALS.access}:${encodeURIComponent(CREDENTIALS.secret)}`;
  for (const endpoint of ['host:9000', 'ftp://host', `http://${user}@host`, 'http://host/?a=b'])
    await refused(openWith({ endpoint }), /Write https:\/\/HOST/, endpoint);
});

test('credentials: a file for its owner alone', async () => {
  const { access, secret } = CREDENTIALS;
  for (const mode of [0o604, 0o602, 0o644])
    await refused(openWith({ credentials: credentialsFile(undefined, mode) }), /others can .*chmod o= \//);
  for (const text of ['', access, `${access}\n\n`, `\n${secret}`, `${access}\n${secret} x`])
    await refused(openWith({ credentials: credentialsFile(text) }), /Put the access key/);
  await refused(openWith({ credentials: '/none' }), /cannot read.*no such file/);
  const windows = credentialsFile(`${access}\r\n${secret}\r\n`, 0o640);
  await tryPlace(await openWith({ credentials: windows }));
});

test('credentials: environment variables, with a session', async () => {
  const names = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'] as const;
  const forget = () => {
    for (const name of names) delete process.env[name];
  };
  try {
    forget();
    const opened = () => openWith({ credentials: '' });
    await refused(opened(), /into AWS_ACCESS_KEY_ID and/);
    process.env.AWS_ACCESS_KEY_ID = CREDENTIALS.access;
    await refused(opened(), /into AWS_ACCESS_KEY_ID/);
    process.env.AWS_SECRET_ACCESS_KEY = CREDENTIALS.secret;
    await tryPlace(await opened());
    server.sessionToken = 'a token+/=';
    await unreachable(tryPlace(await opened()), /InvalidToken/);
    process.env.AWS_SESSION_TOKEN = server.sessionToken;
    await tryPlace(await opened());
    // They belong to the variables, not to a file.
    await unreachable(tryPlace(await open()), /InvalidToken/);
  } finally {
    forget();
  }
});

/** Answers each request in place of the service, until it is disposed. */
function answering(answer: (url: string) => Response): Disposable {
  const { fetch } = globalThis;
  globalThis.fetch = async (url) => answer(String(url));
  const end = () => {
    globalThis.fetch = fetch;
  };
  return { [Symbol.dispose]: end };
}

test('a listing that ends before its end, without a word how to go on, is not taken for all', async () => {
  const half = '<IsTruncated>true</IsTruncated><Contents><Key>copies/a/log/1.zst</Key></Contents>';
  using _ = answering(() => new Response(half));
  await unreachable((await open()).list('log/', ''), /lists a part of its objects/);
});

test("Amazon's addresses: the bucket in the host name, unless it has dots", async () => {
  const asked: string[] = [];
  using _ = answering((url) => {
    asked.push(url);
    return new Response('<Error><Code>NoSuchKey</Code></Error>', { status: 404 });
  });
  for (const to of ['s3://bucket/a', 's3://a.bucket'])
    assert.equal(await (await open(to, { endpoint: '' })).read('x'), null);
  const host = 's3.eu-test-1.amazonaws.com';
  assert.deepEqual(asked, [`https://bucket.${host}/a/x`, `https://${host}/a.bucket/x`]);
});

test('a service below a path', async () => {
  const place = await open('s3://below/x', { endpoint: `${server.endpoint}/${BUCKET}/` });
  await place.create(NAME, ONE);
  assert.deepEqual([...server.objects.keys()], ['below/x/log/1.zst']);
});
