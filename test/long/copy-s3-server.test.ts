/** A copy's place on a real S3 service: Ceph. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPlace } from '../../src/copy/open-place.ts';
import { Unreachable } from '../../src/copy/place.ts';
import { CEPH_BUCKET, type Ceph, startCeph, WITHOUT_CEPH } from '../support/ceph.ts';
import { testPlaces } from '../support/place-cases.ts';

let ceph: Ceph | undefined;
let places = 0;

before(async () => {
  if (!WITHOUT_CEPH) ceph = await startCeph();
});
after(() => ceph?.stop());

/** @param prefix of the place, without the number that keeps places apart */
const open = (prefix: string) => async () => {
  assert.ok(ceph);
  const { settings } = ceph;
  const to = `s3://${CEPH_BUCKET}/${prefix}${++places}`;
  return { place: await openPlace(to, settings), again: () => openPlace(to, settings) };
};

testPlaces('Ceph', open('place'), WITHOUT_CEPH);

test('Ceph: a bucket that is not there, and credentials that it does not know', {
  skip: WITHOUT_CEPH,
}, async () => {
  assert.ok(ceph);
  const { settings } = ceph;
  const absent = await openPlace('s3://absent/a', settings);
  for (const call of [
    () => absent.create('x', Buffer.from('x')),
    () => absent.read('x'),
    () => absent.list('', ''),
  ])
    await assert.rejects(
      call(),
      (error) => error instanceof Unreachable && /404 \(NoSuchBucket\)/.test(error.message),
    );
  process.env.AWS_ACCESS_KEY_ID = 'unknown';
  process.env.AWS_SECRET_ACCESS_KEY = 'unknown';
  const stranger = await openPlace(`s3://${CEPH_BUCKET}/a`, { ...settings, credentials: '' });
  await assert.rejects(stranger.read('x'), /403 \(InvalidAccessKeyId\)\. Check the credentials/);
});
