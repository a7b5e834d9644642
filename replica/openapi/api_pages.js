// A file of its own, for the page forbids scripts within it. A token that is typed in stays in the page's memory.
SwaggerUIBundle({
  url: "v1/openapi.json",
  dom_id: "#pages",
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
});
