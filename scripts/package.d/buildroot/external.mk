include $(sort $(wildcard $(BR2_EXTERNAL_COIR_PATH)/package/*/*.mk))
