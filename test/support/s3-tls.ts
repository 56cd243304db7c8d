/** An S3 service whose certificate a private authority signed, and how a program gets on with it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { makeAuthority } from './certificates.ts';
import { BUCKET, CREDENTIALS, REGION, startS3Server } from './s3-server.ts';
import { testFolder } from './test-folder.ts';

/** @param program test/executable/try-place.ts, as a command with its first arguments */
export async function checkPrivateAuthority(program: string, ...args: string[]): Promise<void> {
  const folder = testFolder();
  const { certificate, key, authority } = makeAuthority(folder, 'service');
  const other = makeAuthority(folder, 'other').authority;
  const server = await startS3Server({ cert: readFileSync(certificate), key: readFileSync(key) });
  const run = async (more: Readonly<Record<string, string>> = {}) => {
    const env = {
      TO: `s3://${BUCKET}/tls`,
      ENDPOINT: server.endpoint,
      REGION,
      AWS_ACCESS_KEY_ID: CREDENTIALS.access,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secret,
      WIREWATCH_HASTE: '20',
      ...more,
    };
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const chunks: Buffer[] = [];
    for await (const chunk of child.stdout) chunks.push(chunk);
    return Buffer.concat(chunks).toString().trim();
  };
  try {
    const refused =
      /^Unreachable: cannot reach s3:.*unable to verify the first certificate.*NODE_EXTRA_CA_CERTS\.$/s;
    assert.match(await run(), refused);
    assert.match(await run({ NODE_EXTRA_CA_CERTS: other }), refused);
    assert.equal(server.requests.length, 0);
    assert.equal(await run({ NODE_EXTRA_CA_CERTS: authority }), 'it works');
    const wrongName = {
      ENDPOINT: server.endpoint.replace('localhost', '127.0.0.1'),
      NODE_EXTRA_CA_CERTS: authority,
    };
    assert.match(await run(wrongName), /is not in the cert's list.*Check that the S3 service runs/s);
  } finally {
    await server.close();
  }
}
