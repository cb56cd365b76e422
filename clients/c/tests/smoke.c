// A game that connects, walks to a wall, sees another object and logs out. smoke.rs runs it as `smoke TOKEN MORE`.
//
// It exits with 0 on success, and otherwise prints the failed check.
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "throng.h"

#define FRAME_MS 5
#define PATIENCE_S 120
#define GOLD 40
#define WALL_M 15.0f
#define SIDE 80

static void fail(const char *what, int line) {
  char text[256];
  throng_error(text, sizeof text);
  fprintf(stderr, "smoke.c:%d: %s; the last error is \"%s\"\n", line, what, text);
  exit(1);
}

#define CHECK(holds) ((holds) ? (void)0 : fail(#holds, __LINE__))

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t read_token(const char *path, uint8_t *token, size_t capacity) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  size_t length = fread(token, 1, capacity, file);
  fclose(file);
  return length;
}

// Checks that invalid arguments are refused and change nothing.
static void refuse(const uint8_t *token, size_t length) {
  ThrongClientSettings settings = throng_settings();
  ThrongClient *client = (ThrongClient *)&settings;
  char text[8];
  CHECK(throng_connect(NULL, length, &settings, &client) == THRONG_STATUS_NULL_POINTER);
  CHECK(client == NULL);
  CHECK(throng_error(text, sizeof text) == strlen("token is null"));
  CHECK(strcmp(text, "token i") == 0);
  CHECK(throng_error(NULL, 0) == strlen("token is null"));
  CHECK(throng_connect(token, length, NULL, &client) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_connect(token, length, &settings, NULL) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_connect(token, 100, &settings, &client) == THRONG_STATUS_BAD_TOKEN);
  CHECK(throng_connect(token, (size_t)-1, &settings, &client) == THRONG_STATUS_BAD_ARGUMENT);
  settings.credential_length = 1;
  CHECK(throng_connect(token, length, &settings, &client) == THRONG_STATUS_NULL_POINTER);
  settings.credential = token;
  settings.credential_length = 513;
  CHECK(throng_connect(token, length, &settings, &client) == THRONG_STATUS_BAD_ARGUMENT);
  settings = throng_settings();
  settings.smoothing_s = NAN;
  CHECK(throng_connect(token, length, &settings, &client) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(client == NULL);
  CHECK(throng_update(NULL, 0.0) == THRONG_STATUS_NULL_POINTER);
  throng_destroy(NULL);
}

// The same for functions that take a client.
static void refuse_more(ThrongClient *client) {
  static const uint8_t bytes_too_many[1025];
  ThrongObject object;
  ThrongClientState state;
  size_t count;
  const uint8_t *bytes;
  CHECK(throng_update(client, NAN) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(throng_update(client, -1.0) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(throng_update(client, 1e300) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(throng_next_event(client, NULL) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_move(client, 1.0f, INFINITY, 0, 0) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(throng_set_ground(client, NULL, 1, 1, 0.5f) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_set_ground(client, NULL, 0, 1, 0.5f) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(throng_send(client, 1, NULL, 1) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_send(client, 1, bytes_too_many, sizeof bytes_too_many) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(throng_reconnect(client, NULL, 0) == THRONG_STATUS_BAD_TOKEN);
  CHECK(throng_objects(client, NULL, 1, &count) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_objects(client, &object, (size_t)-1 / 2, &count) == THRONG_STATUS_BAD_ARGUMENT);
  CHECK(throng_objects(client, &object, 1, NULL) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_object(client, 12345, &object) == THRONG_STATUS_EMPTY);
  CHECK(throng_attribute(client, 12345, GOLD, &bytes, &count) == THRONG_STATUS_EMPTY);
  CHECK(bytes == NULL && count == 0);
  CHECK(throng_attribute(client, 12345, GOLD, &bytes, NULL) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_state(NULL, &state) == THRONG_STATUS_NULL_POINTER);
  CHECK(throng_state(client, NULL) == THRONG_STATUS_NULL_POINTER);
}

// Runs a frame, and counts the events of each kind.
static ThrongClientState frame(ThrongClient *client, int *events, double began_s) {
  const struct timespec pause = {0, FRAME_MS * 1000000L};
  ThrongEvent event;
  ThrongClientState state;
  nanosleep(&pause, NULL);
  CHECK(now_s() - began_s < PATIENCE_S);
  CHECK(throng_update(client, now_s()) == THRONG_STATUS_OK);
  while (throng_next_event(client, &event) == THRONG_STATUS_OK) {
    CHECK(event.kind <= THRONG_EVENT_KIND_CLOSED);
    events[event.kind] += 1;
    if (event.kind == THRONG_EVENT_KIND_WELCOMED) CHECK(event.player == 7);
    if (event.kind == THRONG_EVENT_KIND_SCENE_ENTERED) CHECK(event.x == 40.0f && event.y == 40.0f);
    if (event.kind == THRONG_EVENT_KIND_LOADING)
      CHECK(throng_ready(client, event.scene) == THRONG_STATUS_OK);
    if (event.kind == THRONG_EVENT_KIND_ANNOUNCED)
      CHECK(event.length == 5 && memcmp(event.bytes, "hello", 5) == 0 && event.number == 1);
  }
  CHECK(throng_state(client, &state) == THRONG_STATUS_OK);
  return state;
}

static uint16_t gold(const ThrongClient *client, uint32_t id) {
  const uint8_t *bytes;
  size_t length;
  if (throng_attribute(client, id, GOLD, &bytes, &length) != THRONG_STATUS_OK) return 0;
  CHECK(length == 2);
  return (uint16_t)(bytes[0] | bytes[1] << 8);
}

int main(int count, char **arguments) {
  uint8_t token[4096], walls[SIDE * SIDE];
  int events[THRONG_EVENT_KIND_CLOSED + 1] = {0};
  const double began_s = now_s();
  CHECK(count == 3 && throng_abi() == THRONG_ABI);
  size_t length = read_token(arguments[1], token, sizeof token);
  refuse(token, length);

  ThrongClientSettings settings = throng_settings();
  ThrongClient *client;
  settings.requires_ready = 1;
  CHECK(throng_connect(token, length, &settings, &client) == THRONG_STATUS_OK);
  refuse_more(client);
  for (size_t y = 0; y < SIDE; y++)
    for (size_t x = 0; x < SIDE; x++) walls[y * SIDE + x] = x == 30;
  CHECK(throng_set_ground(client, walls, SIDE, SIDE, 0.5f) == THRONG_STATUS_OK);

  // The controlled object and another one, which has gold, are in view.
  ThrongObject objects[2] = {0};
  size_t in_sight = 0;
  ThrongClientState state;
  do {
    state = frame(client, events, began_s);
    CHECK(throng_objects(client, objects, 2, &in_sight) == THRONG_STATUS_OK);
  } while (in_sight < 2 || !state.has_own || gold(client, objects[!objects[1].is_own].id) != 515);
  CHECK(state.is_connected && state.is_in_scene && state.width_m == 40.0f);
  CHECK(in_sight == 2 && objects[0].id < objects[1].id);
  CHECK(objects[0].is_own + objects[1].is_own == 1);
  const ThrongObject *other = &objects[objects[0].is_own];
  CHECK(other->x == 12.0f && other->y == 20.0f && other->id != state.own_id);
  CHECK(events[THRONG_EVENT_KIND_WELCOMED] == 1 && events[THRONG_EVENT_KIND_SCENE_ENTERED] == 1);
  CHECK(events[THRONG_EVENT_KIND_ENTERED] == 2 && events[THRONG_EVENT_KIND_LOADING] == 1);

  // It walks to the wall and stops at the same position on the client and on the server; on the way, another connection replaces
  // the first one.
  ThrongObject own;
  CHECK(throng_walk(client, 0, 0, 5) == THRONG_STATUS_OK);
  do {
    state = frame(client, events, began_s);
    CHECK(throng_object(client, state.own_id, &own) == THRONG_STATUS_OK && own.is_own);
  } while (own.x < 11.0f);
  CHECK(throng_rebind(client) == THRONG_STATUS_OK);
  length = read_token(arguments[2], token, sizeof token);
  CHECK(throng_reconnect(client, token, length) == THRONG_STATUS_OK);
  do {
    state = frame(client, events, began_s);
    CHECK(throng_object(client, state.own_id, &own) == THRONG_STATUS_OK && own.x < WALL_M);
  } while (own.x < WALL_M - 0.1f || events[THRONG_EVENT_KIND_RESUMED] == 0);
  CHECK(throng_stand(client, 64, 0) == THRONG_STATUS_OK);
  const uint16_t input = state.last_input;
  while (state.last_input == input || state.round_trip_s == 0.0 || state.server_tick == 0.0)
    state = frame(client, events, began_s);
  CHECK(state.loss >= 0.0f && state.loss <= 1.0f && state.time_percent <= 100);

  // The server receives a message of the game and sends an announcement.
  CHECK(throng_send(client, 3, (const uint8_t *)"hi", 2) == THRONG_STATUS_OK);
  while (events[THRONG_EVENT_KIND_ANNOUNCED] == 0) frame(client, events, began_s);
  throng_destroy(client);
  return 0;
}
