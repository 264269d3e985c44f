// usage: mosquitto_bench PORT COUNT QOS
//
// mqtt_bench.cpp by libmosquitto, with the thread that mosquitto_pub has: "sent MICROSECONDS".
#include <mosquitto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long published;
static int connected;

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void on_connect(struct mosquitto* client, void* context, int code) {
  (void)client, (void)context;
  pthread_mutex_lock(&lock);
  connected = code == 0;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
}

static void on_publish(struct mosquitto* client, void* context, int id) {
  (void)client, (void)id;
  pthread_mutex_lock(&lock);
  if (++published >= *(long*)context) pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  long wanted = atol(arguments[2]);
  mosquitto_lib_init();
  struct mosquitto* client = mosquitto_new("bench", 1, &wanted);
  mosquitto_connect_callback_set(client, on_connect);
  mosquitto_publish_callback_set(client, on_publish);
  mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, 20);
  if (mosquitto_connect(client, "127.0.0.1", atoi(arguments[1]), 60) != 0 || mosquitto_loop_start(client) != 0)
    return 1;
  pthread_mutex_lock(&lock);
  while (!connected) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  const long long began = now_ns();
  for (long i = 1; i <= wanted; ++i) {
    char text[24];
    const int size = snprintf(text, sizeof text, "%ld", i);
    if (mosquitto_publish(client, NULL, "bench/load", size, text, atoi(arguments[3]), 0) != 0) return 1;
  }
  pthread_mutex_lock(&lock);
  while (published < wanted) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  printf("sent %lld\n", (now_ns() - began) / 1000);
  mosquitto_disconnect(client);
  mosquitto_loop_stop(client, 0);
  mosquitto_destroy(client);
  return 0;
}
