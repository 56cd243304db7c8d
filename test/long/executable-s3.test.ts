/** The executable and an S3 service with a certificate of a private authority: its Node reads NODE_EXTRA_CA_CERTS too. */
import { after, before, test } from 'node:test';
import { WITHOUT_OPENSSL } from '../support/certificates.ts';
import { buildExecutable, type Executable } from '../support/executable.ts';
import { checkPrivateAuthority } from '../support/s3-tls.ts';

let executable: Executable;
before(() => {
  executable = buildExecutable('try-place', {
    main: 'test/executable/try-place.ts',
    worker: 'test/executable/worker.ts',
  });
});
after(() => executable?.remove());

test(
  'a private authority is trusted if NODE_EXTRA_CA_CERTS names its certificate',
  { skip: WITHOUT_OPENSSL },
  () => checkPrivateAuthority(executable.path),
);
