/** Secrets in what a client sent: a path in the log, or its own words in an error. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutAtSecret } from '../src/printable.ts';

const ID = 'aaaabbbbcccc';
const SECRET = 'a2b3c4d5e6f7g2'.repeat(4).slice(0, 52);
/** Of another service: only its length tells it. */
const HEX = '0a1b2c3d4e5f6789'.repeat(4);
const encodeAll = (text: string) => text.replace(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`);

test('ordinary paths and names stay as they are', () => {
  for (const path of [
    '/v1/detections/t.7001.501.62096',
    '/v1/detections/i.999999999999999.999999999999999.999999999999999',
    '/photos/999999999999999',
    '/v1/schema/detection',
    '/.well-known/oauth-authorization-server',
    'first_detected_estimated',
    `/v1/${HEX.slice(0, 19)}/${HEX.slice(0, 19)}`,
    `/v1/${'x'.repeat(39)}%2F${'y'.repeat(39)}`,
    'an_unknown_parameter_with_the_number_1',
    'an_unknown_parameter_that_nobody_would_ever_guess',
    '/v1/caf%C3%A9/%',
    '/v1/%zz%4/%E0%A4%A/%25',
    '',
    '*',
  ])
    assert.equal(cutAtSecret(path), path);
});

test('no secret stays, in any spelling', () => {
  const shown = `ww_live_${ID}_[redacted]`;
  const key = `ww_live_${ID}_${SECRET}`;
  const paths: [path: string, logged: string][] = [
    [`/v1/${key}`, `/v1/${shown}`],
    [`/v1/${key}/more`, `/v1/${shown}`],
    // With an extra or wrong character: both parts may contain some of the secret.
    [`/v1/${key.slice(0, 40)}%25${key.slice(40)}`, `/v1/${shown}`],
    [`/v1/${key.slice(0, 40)}/${key.slice(40)}`, `/v1/${shown}`],
    [`/v1/x/${key.replaceAll('_', '%5F')}`, `/v1/x/${shown}`],
    [`/v1/x/${key.replaceAll('_', '%255f')}`, `/v1/x/${shown}`],
    [`/v1/x/${encodeAll(key)}`, `/v1/x/${shown}`],
    [`/v1/x/${encodeAll(key).replaceAll('%', '%2525')}`, `/v1/x/${shown}`],
    [`/v1/ww_live_/${ID}_${SECRET}`, '/v1/[redacted]'],
    [`/v1/ww_token_${ID}_${'-_Zz'.repeat(13)}`, `/v1/ww_token_${ID}_[redacted]`],
    [`/v1/ww_live_${ID}_cutoff`, `/v1/${shown}`],
    [`/v1/%zz${SECRET}%`, '/v1/%[redacted]'],
    [`/v1/%25${SECRET}`, '/v1/%25[redacted]'],
    [`/v1/%2f${SECRET}%2F`, '/v1/%2f[redacted]'],
    [`/v1/${'x'.repeat(39)}1`, '/v1/[redacted]'],
    [`/v1/ww_live_${SECRET}`, '/v1/[redacted]'],
    [`/v1/${HEX}`, '/v1/[redacted]'],
    // A wrong character in it: either part could be searched for.
    ...[1, 20, 32, 44, 63].map((at): [string, string] => [
      `/v1/x/${HEX.slice(0, at)}!${HEX.slice(at)}`,
      `/v1/x/${at < 20 ? `${HEX.slice(0, at)}!` : ''}[redacted]`,
    ]),
  ];
  for (const [path, logged] of paths) assert.equal(cutAtSecret(path), logged, path);
});
