/** A program that tries an S3 service as the place of a copy: from the sources (s3-tls.test.ts), or packed. */
import { openPlace, tryPlace } from '../../src/copy/open-place.ts';

const { TO = '', ENDPOINT = '', REGION = '' } = process.env;

openPlace(TO, { endpoint: ENDPOINT, region: REGION, credentials: '' })
  .then(tryPlace)
  .then(
    () => console.log('it works'),
    (error: unknown) => console.log(String(error)),
  );
