/** Every endpoint, in the order of the OpenAPI document. */
import type { Endpoint } from '../description.ts';
import { AUTHORIZATION_SERVER } from './authorization-server.ts';
import { CHANGES } from './changes.ts';
import { DETECTION } from './detection.ts';
import { HEALTH } from './health.ts';
import { ME } from './me.ts';
import { OPENAPI } from './openapi.ts';
import { PERIOD } from './period.ts';
import { PHOTO } from './photo.ts';
import { SCHEMA } from './schema.ts';
import { TOKEN } from './token.ts';

export const ENDPOINTS: readonly Endpoint[] = [
  ...[CHANGES, PERIOD, DETECTION, SCHEMA, PHOTO, ME, TOKEN, AUTHORIZATION_SERVER, OPENAPI, HEALTH],
];
