/** GET /v1/openapi.json: the OpenAPI document of this API, for clients that have no key yet. */
import { Type } from '@sinclair/typebox';
import type { OpenRoute } from '../routes.ts';

export const OPENAPI: OpenRoute = {
  path: '/v1/openapi.json',
  method: 'GET',
  id: 'getOpenApi',
  tag: 'Service',
  summary: 'Read this document',
  description:
    'No authentication and no rate limit. 404 if the operator has switched `server.discovery` off.',
  access: 'open',
  responses: {
    200: { description: 'The OpenAPI 3.1 document, with the address of the service.', schema: 'OpenApi' },
  },
  problems: ['not_found'],
  schemas: { OpenApi: Type.Object({ openapi: Type.String() }) },
  answer: (service) => ({ status: 200, body: service.openApi(service.baseUrl) }),
};
