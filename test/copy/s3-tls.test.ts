/** An S3 service with a certificate of a private authority. */
import { join } from 'node:path';
import { test } from 'node:test';
import { WITHOUT_OPENSSL } from '../support/certificates.ts';
import { checkPrivateAuthority } from '../support/s3-tls.ts';

test(
  'a private authority is trusted if NODE_EXTRA_CA_CERTS names its certificate',
  { skip: WITHOUT_OPENSSL },
  () =>
    checkPrivateAuthority(process.execPath, join(import.meta.dirname, '..', 'executable', 'try-place.ts')),
);
