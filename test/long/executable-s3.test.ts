/** The executable and an S3 service with a certificate of a private authority: its Node reads NODE_EXTRA_CA_CERTS too. */
import { test } from 'node:test';
import { WITHOUT_OPENSSL } from '../support/certificates.ts';
import { buildExecutable } from '../support/executable.ts';
import { checkPrivateAuthority } from '../support/s3-tls.ts';

const executable = buildExecutable('try-place', {
  main: 'test/executable/try-place.ts',
  worker: 'test/executable/worker.ts',
});

test(
  'a private authority is trusted if NODE_EXTRA_CA_CERTS names its certificate',
  { skip: WITHOUT_OPENSSL },
  () => checkPrivateAuthority(executable.path),
);
